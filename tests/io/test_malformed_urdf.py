"""Malformed and hostile URDF: one clear error or one named warning each, and nothing else ever."""

import sys
import time
import tracemalloc
import warnings

import pytest

import jdyn
from jdyn.io import load_urdf
from jdyn.model import ModelError, ModelWarning

pytestmark = pytest.mark.fast_compile

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def link(name, body=INERTIAL):
    return f'<link name="{name}">{body}</link>\n'


def joint(name, parent, child, body=LIMIT, kind="revolute"):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{body}</joint>\n'


def robot(body, attributes='name="r"'):
    return f"<robot {attributes}>\n{body}</robot>"


def arm(in_joint=LIMIT, in_link=INERTIAL, more="", kind="revolute"):
    """A base, a joint `j` and a link `a`; what is under test goes in."""
    return robot(link("base") + link("a", in_link) + joint("j", "base", "a", in_joint, kind) + more)


def inertial(mass="1", ixx="1", ixy="0", iyy="1", izz="1", origin=""):
    return (
        f'<inertial>{origin}<mass value="{mass}"/>'
        f'<inertia ixx="{ixx}" ixy="{ixy}" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial>'
    )


def entities(declarations, use):
    return f'<?xml version="1.0"?>\n<!DOCTYPE robot [{declarations}]>\n<robot name="{use}">{use}</robot>'


LAUGHS = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(12))
OPEN = '<robot name="r">'

# What is refused: the document and phrases that the message must have.
REFUSED = {
    # Not XML.
    "empty": (" \n", ["empty"]),
    "truncated in a tag": ('<robot name="r"><link na', ["not well-formed", "line 1"]),
    "truncated between tags": (OPEN + link("a"), ["ends before the root element"]),
    "truncated in a comment": (OPEN + "<!-- ", ["not well-formed"]),
    "mismatched tags": (OPEN + "\n<link name='a'></joint></robot>", ["mismatched tag", "line 2"]),
    "two roots": (robot(link("a")) * 2, ["junk after document element"]),
    "attribute twice": ('<robot name="r" name="s"/>', ["duplicate attribute"]),
    "attribute without quotes": ("<robot name=r/>", ["not well-formed"]),
    "unknown entity": (robot("&nbsp;"), ["undefined entity"]),
    "bare ampersand": (robot(link("a&b")), ["not well-formed"]),
    "NUL character": (robot(link("a\0")), ["not well-formed"]),
    "control character reference": (robot(link("a&#1;")), ["not well-formed"]),
    "half a surrogate pair": (robot(link("\ud800")), ["surrogate"]),
    "only a comment": ("<!-- robot -->", ["not well-formed"]),
    "binary in text": ("<robot name='r'>\x01\x02</robot>", ["not well-formed"]),
    # Hostile XML.
    "billion laughs": (entities(LAUGHS, "&a12;"), ["document type", "remove"]),
    "quadratic blowup": (entities(f'<!ENTITY a "{"a" * 50_000}">', "&a;" * 20_000), ["document type"]),
    "external entity": (entities('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;"), ["document type"]),
    "external parameter entity": (entities('<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;', "x"), ["document type"]),
    "external DTD": ('<!DOCTYPE robot SYSTEM "http://localhost/x.dtd"><robot name="r"/>', ["document type"]),
    "network entity": (entities('<!ENTITY a SYSTEM "http://localhost/x">', "&a;"), ["document type"]),
    "deep nesting": ("<robot>" * 200_000, ["nested more than 500 deep"]),
    # Something else.
    "SDF": ("<sdf version='1.7'><model name='m'/></sdf>", ["<sdf>", "expected <robot>", "SDF"]),
    "MJCF": ("<mujoco/>", ["<mujoco>", "MJCF"]),
    "HTML": ("<html><body>404</body></html>", ["<html>", "web page"]),
    "xacro tag": (
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">\n<xacro:include filename="a"/></robot>',
        ["line 2", "<xacro:include>", "run xacro first"],
    ),
    "xacro tag without namespace": (robot("<xacro:arm/>"), ["line 2", "<xacro:arm>", "run xacro first"]),
    "xacro expression": (arm(in_link=inertial(mass="${m}")), ["'${m}'", "run xacro first"]),
    "xacro substitution": (
        robot(link("a", '<visual><geometry><mesh filename="$(find p)/a.stl"/></geometry></visual>')),
        ["$(find p)", "run xacro first"],
    ),
    # Names.
    "no links": (robot(""), ["no link"]),
    "robot without name": (robot(link("a") + link("b") + joint("j", "a", "b"), ""), ["<robot> (line 1) has no name"]),
    "link without name": (arm(more="<link/>"), ["<link>", "no name"]),
    "link with blank name": (arm(more=link(" ")), ["<link>", "no name"]),
    "joint without name": (arm(more=link("b") + joint("", "a", "b")), ["<joint>", "no name"]),
    "link name twice": (arm(more=link("a")), ["link 'a' (line 5)", "taken by the link on line 3"]),
    "joint name twice": (arm(more=link("b") + joint("j", "a", "b")), ["joint name 'j' is used 2 times"]),
    # The tree.
    "cycle": (
        robot(link("a") + link("b") + joint("j", "a", "b") + joint("k", "b", "a")),
        ["links form a cycle", "b -> a -> b"],
    ),
    "cycle beside the tree": (
        arm(more=link("b") + link("c") + joint("k", "b", "c") + joint("l", "c", "b")),
        ["cycle", "b"],
    ),
    "joint to itself": (robot(link("a") + joint("j", "a", "a")), ["cycle: a -> a"]),
    "two parents": (arm(more=joint("k", "base", "a")), ["joint 'k' (line 5)", "'a' is already the child of joint 'j'"]),
    "two roots of the tree": (arm(more=link("b") + link("c")), ["'base', 'b', 'c'", "expected one root link"]),
    "unknown parent": (arm(more=link("b") + joint("k", "nowhere", "b")), ["joint 'k'", "parent link 'nowhere'"]),
    "unknown child": (arm(more=joint("k", "a", "nowhere")), ["joint 'k' (line 5)", "child link 'nowhere'"]),
    "undeclared world": (
        robot(link("a") + joint("j", "world", "a")),
        ["joint 'j'", "parent link 'world' does not exist; add <link name=\"world\"/>"],
    ),
    "world below the root": (arm(more=link("world") + joint("k", "a", "world")), ["'world'", "only be the root"]),
    "no parent": (
        robot(link("a") + link("b") + '<joint name="j" type="fixed"><child link="b"/></joint>'),
        ["joint 'j'", "no parent link"],
    ),
    "no child": (arm(more='<joint name="k" type="fixed"><parent link="a"/></joint>'), ["joint 'k'", "no child link"]),
    "parent without link": (
        robot(link("a") + link("b") + '<joint name="j" type="fixed"><parent/><child link="b"/></joint>'),
        ["joint 'j'", "no parent link"],
    ),
    "no joint type": (
        robot(link("a") + link("b") + '<joint name="j"><parent link="a"/><child link="b"/></joint>'),
        ["joint 'j'", "type is missing", "revolute"],
    ),
    "unknown joint type": (arm(kind="ball"), ["1 problem", "joint 'j'", "'ball'", "expected one of revolute"]),
    "joint type in capitals": (arm(kind="Revolute"), ["'Revolute'"]),
    # Numbers.
    "word for a number": (arm(in_link=inertial(mass="heavy")), ["link 'a' (line 3)", "'heavy'", "expected a number"]),
    "decimal comma": (arm(in_link=inertial(mass="1,5")), ["'1,5'"]),
    "C suffix": (arm(in_link=inertial(mass="1.0f")), ["'1.0f'"]),
    "hexadecimal": (arm(in_link=inertial(mass="0x10")), ["'0x10'"]),
    "underscore": (arm(in_link=inertial(mass="1_000")), ["'1_000'"]),
    "unicode digits": (arm(in_link=inertial(mass="١")), ["'١'"]),
    "overflow": (arm(in_link=inertial(mass="1e400")), ["'1e400'"]),
    "thousands of digits": (arm(in_link=inertial(mass="1" * 10_000)), ["link 'a'", "111..."]),
    "NaN mass": (arm(in_link=inertial(mass="nan")), ["'nan'"]),
    "infinite mass": (arm(in_link=inertial(mass="inf")), ["'inf'"]),
    "NaN inertia": (arm(in_link=inertial(ixx="NaN")), ["ixx", "'NaN'"]),
    "empty number": (arm(in_link=inertial(mass="")), ["value of <mass> is ''"]),
    "two numbers for one": (arm(in_link=inertial(mass="1 2")), ["'1 2'", "expected a number"]),
    "short vector": (arm(LIMIT + '<origin xyz="0 1"/>'), ["joint 'j'", "xyz of <origin>", "expected 3 numbers"]),
    "long vector": (arm(LIMIT + '<origin rpy="0 0 0 1"/>'), ["rpy of <origin>", "expected 3 numbers"]),
    "vector with commas": (arm(LIMIT + '<axis xyz="0, 0, 1"/>'), ["xyz of <axis>", "'0, 0, 1'"]),
    "NaN in a vector": (arm(LIMIT + '<origin xyz="0 nan 0"/>'), ["'0 nan 0'"]),
    "infinite vector": (arm(LIMIT + '<origin xyz="0 0 -inf"/>'), ["'0 0 -inf'"]),
    "axis without numbers": (arm(LIMIT + "<axis/>"), ["<axis> has no xyz"]),
    "zero axis": (arm(LIMIT + '<axis xyz="0 0 0"/>'), ["joint 'j'", "axis is zero"]),
    "zero plane normal": (arm('<axis xyz="0 0 0"/>', kind="planar"), ["joint 'j'", "normal is zero"]),
    "zero quaternion": (arm(LIMIT + '<origin quat_xyzw="0 0 0 0"/>'), ["joint 'j'", "quat_xyzw"]),
    "two orientations": (arm(LIMIT + '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>'), ["either rpy or"]),
    # Inertia.
    "negative mass": (arm(in_link=inertial(mass="-1")), ["link 'a'", "mass is -1"]),
    "negative moment": (arm(in_link=inertial(iyy="-1")), ["link 'a'", "-1, 1, 1", "none below zero"]),
    "indefinite products": (arm(in_link=inertial(ixy="2")), ["link 'a'", "-1, 1, 3"]),
    "no mass": (
        arm(in_link=INERTIAL.replace('<mass value="1"/>', "")),
        ["link 'a'", "<inertial> has no <mass>"],
    ),
    "mass without value": (arm(in_link=INERTIAL.replace(' value="1"', "")), ["<mass> has no value"]),
    "no inertia": (arm(in_link='<inertial><mass value="1"/></inertial>'), ["<inertial> has no <inertia>"]),
    "no izz": (arm(in_link=INERTIAL.replace(' izz="1"', "")), ["<inertia> has no izz"]),
    "two inertials": (arm(in_link=INERTIAL * 2), ["link 'a'", "2 <inertial>", "expected one"]),
    "bad inertial origin": (arm(in_link=inertial(origin='<origin xyz="a b c"/>')), ["link 'a'", "'a b c'"]),
    # Joints.
    "two limits": (arm(LIMIT * 2), ["joint 'j'", "2 <limit>"]),
    "two axes": (arm(LIMIT + '<axis xyz="1 0 0"/>' * 2), ["2 <axis>"]),
    "two parents in one joint": (arm(LIMIT + '<parent link="base"/>'), ["2 <parent>"]),
    "limits crossed": (arm(LIMIT.replace('"-1"', '"2"')), ["joint 'j'", "above the upper limit"]),
    "lower above the default upper": (arm('<limit lower="1" effort="1" velocity="1"/>'), ["above the upper limit"]),
    "negative effort": (arm(LIMIT.replace('effort="1"', 'effort="-1"')), ["joint 'j'", "effort is -1"]),
    "negative velocity": (arm(LIMIT.replace('velocity="1"', 'velocity="-1"')), ["velocity is -1"]),
    "negative damping": (arm(LIMIT + '<dynamics damping="-1"/>'), ["damping is -1"]),
    "negative friction": (arm(LIMIT + '<dynamics friction="-1"/>'), ["friction is -1"]),
    "mimic of nobody": (arm(LIMIT + "<mimic/>"), ["joint 'j'", "<mimic> names no joint"]),
    "mimic of an unknown joint": (arm(LIMIT + '<mimic joint="k"/>'), ["joint 'j'", "'k'", "does not exist"]),
    "mimic of itself": (arm(LIMIT + '<mimic joint="j"/>'), ["joint 'j'", "cycle: j -> j"]),
    "mimic of a fixed joint": (
        arm(LIMIT + '<mimic joint="k"/>', more=link("b") + joint("k", "a", "b", kind="fixed")),
        ["joint 'j'", "'k'", "one degree of freedom"],
    ),
    "mimic of a planar joint": (
        arm(LIMIT + '<mimic joint="k"/>', more=link("b") + joint("k", "a", "b", "", "planar")),
        ["joint 'j'", "one degree of freedom"],
    ),
    "mimics in a cycle": (
        arm(
            LIMIT + '<mimic joint="k"/>',
            more=link("b") + joint("k", "a", "b", LIMIT + '<mimic joint="j"/>'),
        ),
        ["mimic joints form a cycle"],
    ),
    "mimic multiplier": (arm(LIMIT + '<mimic joint="j" multiplier="-1.0x"/>'), ["'-1.0x'"]),
    # Shapes.
    "mesh without file": (arm(in_link="<visual><geometry><mesh/></geometry></visual>"), ["<mesh> has no filename"]),
    "two shapes": (
        arm(in_link='<visual><geometry><sphere radius="1"/><box size="1 1 1"/></geometry></visual>'),
        ["link 'a'", "2 shapes"],
    ),
    "negative radius": (
        arm(in_link='<collision><geometry><sphere radius="-1"/></geometry></collision>'),
        ["link 'a'", "negative size"],
    ),
    "box of two sides": (arm(in_link='<visual><geometry><box size="1 1"/></geometry></visual>'), ["size of <box>"]),
}

MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'

# What loads with one warning: the document and phrases that the warning must have.
WARNED = {
    "impossible moments": (arm(in_link=inertial(izz="5")), ["link 'a'", "1, 1, 5", "impossible for a rigid body"]),
    "negative moment of a fixed link": (
        arm(more=link("b", inertial(izz="-1")) + joint("k", "a", "b", "", "fixed")),
        ["link 'b'", "none below zero"],
    ),
    "nothing with mass": (arm(in_link=""), ["no mass on or beyond a"]),
    "no limit": (arm(""), ["no <limit>, taken as unlimited: 'j'"]),
    "no effort": (arm('<limit lower="0" upper="1"/>'), ["no effort or velocity", "'j'"]),
    "no range": (arm('<limit effort="1" velocity="1"/>'), ["[0, 0]", "'j'"]),
    "range of a continuous joint": (arm(kind="continuous"), ["continuous", "lower and upper of 'j'"]),
    "limits of a planar joint": (arm(kind="planar"), ["planar", "'j'"]),
    "misspelled element": (arm(LIMIT + '<orgin xyz="0 0 1"/>'), ["ignored", "<orgin> in <joint>"]),
    "misspelled attribute": (arm(LIMIT + '<origin xzy="0 0 1"/>'), ["ignored", "attribute xzy of <origin>"]),
    "version from the future": (arm().replace("<robot", '<robot version="3.0"'), ["version", "'3.0'"]),
    "unknown element": (arm(more="<loop_joint/>"), ["<loop_joint> in <robot>"]),
    "foreign namespace": (
        robot(link("a") + link("b") + joint("j", "a", "b") + "<d:joint/>", 'name="r" xmlns:d="urn:d"'),
        ["<joint> in <robot>"],
    ),
    "undeclared prefix of an attribute": (
        arm(LIMIT.replace("/>", ' drake:acceleration="9"/>')),
        ["attribute drake:acceleration of <limit>"],
    ),
    "undeclared prefix of an element": (arm(more='<drake:bushing name="x"/>'), ["<bushing> in <robot>"]),
    "left over from xacro": (
        robot('<xacro:property name="m" value="2"/>' + link("base") + link("a") + joint("j", "base", "a")),
        ["left over from xacro: <xacro:property>"],
    ),
    "contact of a link": (
        arm(in_link=INERTIAL + '<contact><lateral_friction value="1"/></contact>'),
        ["ignored: <contact> of link 'a'"],
    ),
    "MuJoCo's extension": (arm(more="<mujoco><compiler/></mujoco>"), ["ignored: <mujoco>"]),
    "a loop of Gazebo": (
        arm(more='<gazebo><joint name="loop" type="revolute"/></gazebo>'),
        ["in <gazebo>: <joint> of 'loop'"],
    ),
    "a spring of Gazebo": (
        arm(more='<gazebo reference="j"><springStiffness>9</springStiffness><material>Grey</material></gazebo>'),
        ["in <gazebo>: <springStiffness> of 'j'"],
    ),
    "no effort at all": (
        arm('<limit lower="0" upper="1" effort="0" velocity="0"/>'),
        ["effort of 0 in <limit>, kept", "velocity of 0 in <limit>, kept", "'j'"],
    ),
    "lost bracket": (arm(more='link name="b"/>'), ["stray text", "link name="]),
    "visual without shape": (arm(in_link=INERTIAL + "<visual/>"), ["without a shape", "<visual> of link 'a'"]),
    "mesh at an absolute path": (arm(in_link=INERTIAL + MESH.format("/etc/passwd")), ["outside", "/etc/passwd"]),
    "mesh by file URL": (arm(in_link=INERTIAL + MESH.format("file:///etc/passwd")), ["outside", "file:///etc/passwd"]),
    "mesh above the folder": (arm(in_link=INERTIAL + MESH.format("../../secret.stl")), ["outside", "secret.stl"]),
    "mesh above its package": (arm(in_link=INERTIAL + MESH.format("package://../x.stl")), ["outside", "x.stl"]),
    "mesh from the network": (arm(in_link=INERTIAL + MESH.format("http://localhost/a.stl")), ["outside", "http:"]),
    "mesh with backslashes": (arm(in_link=INERTIAL + MESH.format("..\\..\\a.stl")), ["outside", "a.stl"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name):
    document, phrases = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        load_urdf(document)
    message = str(caught.value)
    assert message.startswith("URDF text")
    assert [phrase for phrase in phrases if phrase not in message] == [], message
    assert len(message) < 2000


@pytest.mark.parametrize("name", WARNED)
def test_is_named_in_one_warning(name, tmp_path):
    document, phrases = WARNED[name]
    file = tmp_path / "folder" / "robot.urdf"
    file.parent.mkdir()
    file.write_text(document)
    with pytest.warns(ModelWarning) as caught:
        model = load_urdf(file)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(str(file))
    assert [phrase for phrase in phrases if phrase not in message] == [], message
    assert model.shapes is None or all(shape.path is None for shape in model.shapes.entries)


def test_meshes_that_do_not_exist_are_named_at_load(tmp_path):
    (tmp_path / "here.stl").touch()
    names = "here.stl", "absent.stl", "package://nowhere/a.stl", f"file://{tmp_path}/gone.stl", "file://meshes/b.stl"
    file = tmp_path / "robot.urdf"
    file.write_text(arm(in_link=INERTIAL + "".join(MESH.format(name) for name in names)))
    with pytest.warns(ModelWarning) as caught:
        model = load_urdf(file)
    (warning,) = caught
    for name in ("that do not exist: 'absent.stl'", f"{tmp_path}/gone.stl", "'file://meshes/b.stl'"):
        assert name in str(warning.message)
    assert "here.stl" not in str(warning.message)
    assert "in no folder of package_dirs: 'package://nowhere/a.stl'" in str(warning.message)
    assert model.shapes.entries[-1].path == f"{tmp_path}/meshes/b.stl"


@pytest.mark.parametrize("document", [arm(), "<mujoco/>"])
def test_folders_that_do_not_exist_are_refused(document, tmp_path):
    with pytest.raises(ValueError, match=f"package_dirs: there is no folder {tmp_path}/nowhere"):
        jdyn.load(document, package_dirs=[tmp_path, tmp_path / "nowhere"])


@pytest.mark.parametrize("before", ["\n", "<!-- made by xacro -->\n", "<!-- a --> <!-- b -->\n\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_what_stands_before_the_declaration_does_not_matter(before, encoding, tmp_path):
    declared = f'{before}<?xml version="1.0"\n encoding="{encoding}"?>\n'
    file = tmp_path / "r.urdf"
    file.write_bytes((declared + arm().replace('"a"', '"å"')).encode(encoding))
    assert load_urdf(file).body_names == ("å",)
    file.write_text(declared + arm(in_link=inertial(mass="heavy")))
    with pytest.raises(ModelError, match=rf"line {declared.count(chr(10)) + 3}\)"):
        load_urdf(file)


def test_all_problems_come_in_one_message():
    links = link("a", inertial(mass="-1")) + link("b", inertial(ixx="x")) + link("c")
    joints = joint("j", "a", "b", '<axis xyz="0 0 0"/>' + LIMIT) + joint("k", "b", "c", kind="screw")
    document = robot(links + joints)
    with pytest.raises(ModelError) as caught:
        load_urdf(document)
    message = str(caught.value)
    assert "4 problems" in message
    for phrase in ("mass is -1", "ixx of <inertia> is 'x'", "axis is zero", "'screw'"):
        assert phrase in message


def test_files_that_are_no_text(tmp_path):
    cases = {
        "missing": (None, "no such file"),
        "zeros": (b"\0" * 1000, "not well-formed"),
        "elf": (b"\x7fELF\x02\x01\xff\xfe\x00" * 100, "not text"),
        "latin": ('<robot name="é"/>'.encode("latin-1"), "UTF-8"),
        "odd utf-16": ('<robot name="r"/>'.encode("utf-16") + b"\n", "UTF-16"),
        "unknown encoding": (b'<?xml version="1.0" encoding="ebcdic"?><robot/>', "'ebcdic'"),
        "decompressor": (b'<?xml version="1.0" encoding="zip"?><robot/>', "save the file as UTF-8"),
        "empty": (b"", "not well-formed"),
    }
    for name, (content, phrase) in cases.items():
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(ModelError) as caught:
            load_urdf(file)
        assert str(file) in str(caught.value) and phrase in str(caught.value), (name, str(caught.value))
    for source in (tmp_path, "x" * 100_000, "a\0b", "/dev/null"):
        with pytest.raises(ModelError):
            load_urdf(source)
    with pytest.raises(TypeError, match="path or URDF text"):
        load_urdf(b"<robot/>")  # type: ignore[arg-type]


def test_floating_base_needs_something_to_float():
    document = robot(link("world", "") + link("a") + link("b") + joint("j", "world", "a") + joint("k", "world", "b"))
    assert load_urdf(document).nv == 2
    with pytest.raises(ModelError, match="root link is 'world'"):
        load_urdf(document, floating_base=True)


def test_huge_attribute_is_only_a_string():
    model = load_urdf(robot(link("base") + link("a" * 10_000_000) + joint("j", "base", "a" * 10_000_000)))
    assert len(model.body_names[0]) == 10_000_000


def test_bombs_cost_little():
    bombs = [REFUSED[name][0] for name in REFUSED if "entity" in name or name in ("billion laughs", "quadratic blowup")]
    bombs.append(entities(LAUGHS, "").replace('name=""', 'name="&a12;"'))
    assert len(bombs) >= 6
    for bomb in bombs:
        size = len(bomb)
        tracemalloc.start()
        start = time.perf_counter()
        with pytest.raises(ModelError):
            load_urdf(bomb)
        elapsed, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert elapsed < 1
        assert peak < 4e6 + 2 * size


class Opened:
    """Files opened while it is in force; an audit hook cannot be removed, so there is one for the whole module."""

    def __init__(self):
        self.files: list | None = None
        sys.addaudithook(self)

    def __call__(self, event, args):
        if self.files is not None and event in ("open", "socket.connect", "socket.getaddrinfo", "urllib.Request"):
            self.files.append(str(args[0]))


opened = Opened()


def test_no_other_file_is_ever_opened(tmp_path):
    (tmp_path / "secret.stl").write_text("solid")
    folder = tmp_path / "pkg" / "urdf"
    folder.mkdir(parents=True)
    (folder / "near.stl").write_text("solid")
    near = arm(in_link=INERTIAL + MESH.format("near.stl") + MESH.format("package://pkg/urdf/near.stl"))
    documents = [
        near,
        near,
        *(document for document, _ in (*REFUSED.values(), *WARNED.values()) if "\ud800" not in document),
    ]
    for number, document in enumerate(documents):
        file = folder / "robot.urdf"
        file.write_text(document)
        opened.files = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                load_urdf(file)
        except ModelError:
            pass
        finally:
            files, opened.files = opened.files, None
        # Whatever Python and JAX load on first use, they load with the first document.
        if number > 0:
            assert set(files) <= {str(file)}
