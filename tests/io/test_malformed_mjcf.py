"""Malformed and hostile MJCF: each document gives one clear error, quickly, and no file outside is opened."""

import time
import warnings

import pytest

from jdyn.io import load_mjcf
from jdyn.model import ModelError, ModelWarning

pytestmark = pytest.mark.fast_compile

BODY = '<body name="a"><joint name="h"/><geom size=".1"/></body>'
SECRET = "<mujocoinclude><body name='leaked'><joint/><geom size='.1'/></body></mujocoinclude>"


def world(inside, head="", tail=""):
    return f"<mujoco>{head}<worldbody>{inside}</worldbody>{tail}</mujoco>"


def mesh(file, compiler=""):
    asset = f'<compiler {compiler}/><asset><mesh name="m" file="{file}"/></asset>'
    return world('<body><joint/><geom type="mesh" mesh="m"/></body>', asset)


def inertial(numbers):
    return world(f'<body name="a"><joint/><inertial pos="0 0 0" {numbers}/></body>')


MALFORMED = {
    # Not XML, not MJCF.
    "empty": ("", "it is empty"),
    "prose": ("<mujoco> & co", "not well-formed XML at line 1"),
    "truncated": (world(BODY)[:-20], "not well-formed XML"),
    "two roots": (world(BODY) + "<mujoco/>", "junk after document element"),
    "other root": ("<sdf/>", "expected an MJCF document, whose root is <mujoco>, got <sdf>"),
    "urdf": ('<robot name="r"><link name="a"/></robot>', "got <robot>; this is URDF"),
    "no such file": ("absent.xml", "there is no such file"),
    "namespace": (world(BODY).replace("<body", '<body xmlns="u"'), "MJCF has no XML namespaces"),
    "prefixed attribute": (world(BODY, '<option xml:space="preserve"/>'), "MJCF has no XML namespaces"),
    # What MuJoCo's compiler refuses.
    "unknown element": (world(BODY + "\n<foo/>"), "unrecognized element; Element 'foo', line 2"),
    "unknown attribute": (world('<body colour="red"/>'), "unrecognized attribute: 'colour'"),
    "bad number": (world('<body pos="1 a 3"/>'), "bad format in attribute 'pos'"),
    "too many numbers": (world('<body pos="1 2 3 4"/>'), "attribute 'pos' has too much data"),
    "too few numbers": (world('<body pos="1 2"/>'), "attribute 'pos' does not have enough data"),
    "bad keyword": (world('<body><joint type="screw"/></body>'), "invalid keyword: 'screw'"),
    "repeated body": (world('<body name="a"/><body name="a"/>'), "repeated name 'a' in body"),
    "unknown joint": (world(BODY, tail='<actuator><motor joint="k"/></actuator>'), "MuJoCo refuses it: "),
    "unknown plugin": (world(BODY, '<extension><plugin plugin="no.such"/></extension>'), "plugin no.such not found"),
    "zero axis": (world('<body><joint axis="0 0 0"/><geom size=".1"/></body>'), "axis too small in joint"),
    "zero quaternion": (world('<body quat="0 0 0 0"><joint/><geom size=".1"/></body>'), "zero quaternion"),
    "massless": (world('<body name="a"><joint/></body>'), "mass and inertia of moving bodies"),
    "negative mass": (inertial('mass="-1" diaginertia="1 1 1"'), "mass and inertia of moving bodies"),
    "triangle": (inertial('mass="1" diaginertia="1 1 3"'), "inertia must satisfy A + B >= C"),
    "indefinite": (inertial('mass="1" fullinertia="1 1 1 2 0 0"'), "inertia must have positive eigenvalues"),
    "free inside": (world('<body><body><freejoint/><geom size=".1"/></body></body>'), "free joint can only be used on"),
    "stops swapped": (world('<body><joint range="1 -1"/><geom size=".1"/></body>'), "is above the upper"),
    # What MuJoCo would take.
    "nan": (world('<body name="a" pos="nan 0 0"><joint/><geom size=".1"/></body>'), "pos is 'nan 0 0', expected"),
    "infinite mass": (inertial('mass="inf" diaginertia="1 1 1"'), "mass is 'inf', expected finite numbers"),
    "overflow": (world('<body><joint/><geom size="1e200"/></body>'), "size is '1e200', expected finite numbers up to"),
    "negative damping": (world('<body><joint damping="-1"/><geom size=".1"/></body>'), "expected a number that is not"),
    # Entities and document type declarations.
    "entity bomb": ('<!DOCTYPE mujoco [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>' + world("&c;"), "document type"),
    "external entity": ('<!DOCTYPE mujoco [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + world("&a;"), "document type"),
    "hidden document": (
        "<!DOCTYPE mujoco [<!-- ><mujoco><include file='secret.xml'/></mujoco> -->]>" + world(BODY), "document type",
    ),
    # Files.
    "include above": (world('<include file="../secret.xml"/>'), "file '../secret.xml' is outside the model's folder"),
    "include link": (world('<include file="link.xml"/>'), "file 'link.xml' is outside the model's folder"),
    "include absolute": (world('<include file="/etc/passwd"/>'), "file '/etc/passwd' is outside the model's folder"),
    "include backslash": (world('<include file="..\\secret.xml"/>'), "is outside the model's folder"),
    "include absent": (world('<include file="absent.xml"/>'), "file 'absent.xml' is not in"),
    "include nothing": (world("<include/>"), "file '' is not in"),
    "include folder": (world('<include file="."/>'), "file '.' is not in"),
    "include itself": (world('<include file="robot.xml"/>'), "file 'robot.xml' is included twice"),
    "include twice": (world('<include file="part.xml"/><include file="part.xml"/>'), "'part.xml' is included twice"),
    "include not XML": (world('<include file="cube.stl"/>'), "cube.stl"),
    "include endless name": (world(f'<include file="{"a" * 5000}"/>'), "aaa...' cannot be read"),
    "mesh above": (mesh("../cube.stl"), "file '../cube.stl' is outside the model's folder"),
    "mesh absolute": (mesh("/etc/passwd"), "file '/etc/passwd' is outside the model's folder"),
    "mesh folder above": (mesh("cube.stl", 'meshdir=".."'), "file '../cube.stl' is outside the model's folder"),
    "asset folder above": (mesh("cube.stl", 'assetdir="/etc"'), "file '/etc/cube.stl' is outside"),
    "mesh absent": (mesh("absent.stl"), "file 'absent.stl' is not in"),
    "mesh empty": (mesh("cube.stl"), "MuJoCo refuses it: "),
    "mesh URL": (mesh("http://localhost/cube.stl"), "file 'http://localhost/cube.stl' is not in"),
    "model above": (world(BODY, '<asset><model name="m" file="../m.xml"/></asset>'), "file '../m.xml' is outside"),
    "model in itself": (
        world(BODY + '<attach model="m" body="a" prefix="p"/>', '<asset><model name="m" file="model.xml"/></asset>'),
        "file 'model.xml' is included twice",
    ),
    "file elsewhere": (world('<body file="robot.xml"/>'), "file 'robot.xml': this element cannot refer to a file"),
    # Too much.
    "deep": (world("<body>" * 600 + "</body>" * 600), "nested more than 500 deep"),
    "deep for MuJoCo": (world("<body>" * 495 + "</body>" * 495), "nested more than 490 deep"),
    "wide": (world("<site/>" * 30_000), "expands to more than 20000 elements"),
    "replicas": (world(f'<replicate count="1000000">{BODY}</replicate>'), "expands to more than 20000 elements"),
    "nested replicas": (
        world('<replicate count="200">' * 4 + BODY + "</replicate>" * 4), "expands to more than 20000 elements",
    ),
    "replica count": (world(f'<replicate count="1e9">{BODY}</replicate>'), "count is '1e9', expected whole numbers"),
    "grid": (world('<flexcomp name="f" type="grid" count="1000 1000 1000"/>'), "expands to more than 20000 elements"),
    "fine mesh": (
        world(BODY, '<asset><mesh name="m" builtin="supertorus" params="50000 .1 1 1"/></asset>'),
        "params is '50000 .1 1 1', expected at most 300",
    ),
    "height field": (
        world(BODY, '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'),
        "nrow is '100000', expected at most 4096",
    ),
    "activations": (
        world(BODY, tail='<actuator><general joint="h" dyntype="user" actdim="2000000000"/></actuator>'),
        "actdim is '2000000000', expected at most 1000",
    ),
}  # fmt: skip

HARMLESS = {
    "memory": world(BODY, '<size memory="100G" nuserdata="2000000000" nuser_body="100000000"/>'),
    "texture": world(BODY, '<asset><texture name="t" type="2d" builtin="flat" width="99999" height="99999"/></asset>'),
    "texture file": world(BODY, '<asset><texture name="t" type="2d" file="/etc/passwd"/></asset>'),
    "skin file": world(BODY, '<deformable><skin file="/etc/passwd"/></deformable>'),
    "numbers": world(BODY, '<custom><numeric name="n" size="2000000000"/></custom>'),
    "sensor": world(BODY, tail='<sensor><user dim="2000000000"/></sensor>'),
    "muscle": world(
        BODY, '<compiler><lengthrange inttotal="1e9" timestep="1e-9"/></compiler>',
        '<actuator><muscle joint="h"/></actuator>',
    ),
    "history": world(BODY, tail='<actuator><motor joint="h" nsample="16000000" delay="1"/></actuator>'),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with harmless parts, and secrets around it."""
    inside = tmp_path / "robot"
    inside.mkdir()
    (tmp_path / "secret.xml").write_text(SECRET)
    (tmp_path / "cube.stl").write_bytes(bytes(84))
    (inside / "cube.stl").write_bytes(bytes(84))
    (inside / "link.xml").symlink_to(tmp_path / "secret.xml")
    (inside / "part.xml").write_text("<mujocoinclude><site/></mujocoinclude>")
    (inside / "model.xml").write_text(MALFORMED["model in itself"][0])
    monkeypatch.chdir(inside)
    return inside


def put(folder, document):
    """The document as a file of the folder; names of files and empty text as they are."""
    if not document.startswith("<"):
        return folder / document if document else document
    (folder / "robot.xml").write_text(document)
    return folder / "robot.xml"


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_documents_are_refused_in_words(folder, capfd, name):
    document, said = MALFORMED[name]
    source = put(folder, document)
    start = time.perf_counter()
    with pytest.raises(ModelError) as error:
        load_mjcf(source)
    assert said in str(error.value)
    assert str(error.value).startswith(str(folder) if document else "MJCF text: ")
    assert len(str(error.value)) < 1500
    assert time.perf_counter() - start < 5
    assert error.value.__cause__ is None
    assert capfd.readouterr() == ("", "")
    assert not (folder / "MUJOCO_LOG.TXT").exists()


@pytest.mark.parametrize("name", HARMLESS)
def test_what_dynamics_never_needs_is_never_allocated_or_opened(folder, name):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        assert load_mjcf(put(folder, HARMLESS[name])).body_names == ("a",)
    assert time.perf_counter() - start < 5


def test_text_names_no_files_without_a_folder(folder):
    with pytest.raises(ModelError, match="MJCF text has no folder; name the folder in package_dirs"):
        load_mjcf(world(BODY, '<include file="part.xml"/>'))
    (folder / "rest.xml").write_text("<mujoco><option timestep='.01'/></mujoco>")
    assert load_mjcf(world(BODY, '<include file="rest.xml"/>'), package_dirs=folder).body_names == ("a",)


def test_all_absent_files_are_named_at_once(folder):
    meshes = "".join(f'<mesh name="m{i}" file="absent{i}.stl"/>' for i in range(3))
    with pytest.raises(ModelError) as error:
        load_mjcf(put(folder, world(BODY, f"<asset>{meshes}</asset>")))
    assert [f"absent{i}.stl" in str(error.value) for i in range(3)] == [True] * 3


def test_attached_models_multiply(folder):
    """Each file attaches the next one twice: the size doubles with every file."""
    for i in range(20):
        twice = "".join(f'<frame><attach model="m" body="a" prefix="{side}{i}"/></frame>' for side in "lr")
        head = f'<asset><model name="m" file="m{i + 1}.xml"/></asset>'
        (folder / f"m{i}.xml").write_text(world(f'<body name="a"><geom size=".1"/>{twice}</body>', head))
    (folder / "m20.xml").write_text(world(BODY))
    with pytest.raises(ModelError, match="expands to more than 20000 elements"):
        load_mjcf(folder / "m0.xml")


def test_parts_of_one_document_multiply():
    """Each body holds the one before twice, and in the second document whatever refers to its joint as well."""
    bodies = [BODY.replace('"a"', '"b0"')]
    for i in range(20):
        twice = "".join(f'<attach body="b{i}" prefix="{side}{i}_"/>' for side in "lr")
        bodies.append(f'<body name="b{i + 1}">{twice}</body>')
    motors = '<motor joint="h"/>' * 300
    copies = "".join(f'<attach body="b0" prefix="p{i}_"/>' for i in range(100))
    for document in (
        world("".join(bodies)),
        world(bodies[0] + copies, tail=f"<actuator>{motors}</actuator>"),
    ):
        with pytest.raises(ModelError, match="expands to more than 20000 elements"):
            load_mjcf(document)


def test_a_crowd_of_files_is_refused(folder):
    """Every document names two copies of the next one."""
    for i in range(8):
        twice = "".join(f'<model name="{side}" file="m{i + 1}.xml"/>' for side in "lr")
        (folder / f"m{i}.xml").write_text(world(BODY, f"<asset>{twice}</asset>"))
    (folder / "m8.xml").write_text(world(BODY))
    with pytest.raises(ModelError, match="more than 100 files are included"):
        load_mjcf(folder / "m0.xml")


def test_errors_name_the_included_file_and_its_line(folder):
    (folder / "bad.xml").write_text("<mujocoinclude>\n<body>\n<joint axis='0 0 0'/></body></mujocoinclude>")
    with pytest.raises(ModelError, match=r"axis too small in joint; /.*bad\.xml, line 3"):
        load_mjcf(put(folder, world('<include file="bad.xml"/>')))
