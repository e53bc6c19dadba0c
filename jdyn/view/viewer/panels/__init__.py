"""The controls on the viewer's page, one file each concept."""
