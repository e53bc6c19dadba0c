"""The programs of Cloutier's thesis as commands: `jdyn prrr` simulates a planar robot, `jdyn prrrfdt` tests its forward
dynamics."""
