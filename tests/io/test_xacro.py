"""Files of xacro: expanded as text by hand, in the folders that the user named, and unable to do anything else."""

import sys
import warnings

import pytest

import jdyn
from tests.io.test_malformed_urdf import INERTIAL, LIMIT, joint, link

pytestmark = pytest.mark.fast_compile

pytest.importorskip("xacro")

OPEN = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
ARM = f"""{OPEN}
<xacro:arg name="prefix" default=""/>
<xacro:arg name="heavy" default="false"/>
<xacro:property name="mass" value="${{1.5 * 2}}"/>
<xacro:property name="sizes" value="${{[0.1 * (i + 1) for i in range(2)]}}"/>
<xacro:include filename="parts/rod.xacro"/>
<link name="base"/>
<xacro:rod name="$(arg prefix)rod" mass="${{10 * mass if xacro.arg('heavy') == 'true' else mass}}" at="${{sizes[1]}}"/>
</robot>"""
ROD = f"""{OPEN}
<xacro:macro name="rod" params="name mass at">
  <link name="${{name}}"><inertial><origin xyz="0 0 ${{-at / 2}}"/><mass value="${{mass}}"/>
    <inertia ixx="${{mass * at**2 / 12}}" ixy="0" ixz="0" iyy="${{mass * at**2 / 12}}" iyz="0"
      izz="$(eval 0.5 - 0.499)"/>
  </inertial></link>
  <joint name="${{name}}_hinge" type="revolute"><parent link="base"/><child link="${{name}}"/>
    <origin xyz="0 0 ${{sin(pi / 2)}}"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
</xacro:macro></robot>"""


def written(folder, files):
    """A folder with files of these names."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def body(text):
    """A robot that is valid where `text` is harmless."""
    return f"{OPEN}{link('base')}{link('a')}{joint('j', 'base', 'a')}{text}</robot>"


def quiet(path, **options):
    """A model, and what is warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jdyn.ModelWarning)
        model = jdyn.load(path, **options)
    return model, [str(each.message) for each in caught]


def test_macros_arguments_and_included_files(tmp_path, capfd):
    file = written(tmp_path, {"arm.urdf.xacro": ARM, "parts/rod.xacro": ROD}) / "arm.urdf.xacro"
    model, words = quiet(file)
    assert model.joint_names == ("rod_hinge",) and not words and capfd.readouterr() == ("", "")
    assert float(model.inertias.mass[0]) == 3 and abs(float(model.inertias.first_moment[0, 2]) + 0.3) < 1e-6
    other, _ = quiet(str(file), arguments={"prefix": "left_", "heavy": True})
    assert other.body_names == ("left_rod",) and float(other.inertias.mass[0]) == 30
    assert jdyn.load_system(file, arguments={"prefix": "b_"}).model.body_names == ("b_rod",)
    assert jdyn.load_constraints(file) == ()


@pytest.mark.parametrize("arguments", [{"prefx": "left_"}, {"prefx": 1, "heavy": True}])
def test_arguments_that_the_file_lacks(tmp_path, arguments):
    file = written(tmp_path, {"arm.urdf.xacro": ARM, "parts/rod.xacro": ROD}) / "arm.urdf.xacro"
    with pytest.raises(ValueError, match="no <xacro:arg> called 'prefx'; there are heavy, prefix"):
        jdyn.load(file, arguments=arguments)


@pytest.mark.parametrize("source", [body(""), "pendulum", "<mujoco/>"])
def test_arguments_of_something_else(source):
    for load in (jdyn.load, jdyn.load_system):
        with pytest.raises(ValueError, match=r"arguments: expected a .*; leave out arguments"):
            load(source, arguments={})


def test_packages_are_found_without_ros(tmp_path):
    """In the folders that are named, as packages or as folders of them, and around the file."""
    text = ARM.replace("parts/rod.xacro", "$(find rods)/parts/rod.xacro")
    include = text.replace("$(find rods)", "package://rods")
    files = {
        "arms/arm.xacro": text,
        "arms/other.xacro": include,
        "ws/rods/parts/rod.xacro": ROD,
        "near/rods/urdf/arm.xacro": text,
        "near/rods/parts/rod.xacro": ROD,
        "pkg/urdf/arm.xacro": ARM.replace("parts", "../parts"),
        "pkg/parts/rod.xacro": ROD,
        "pkg/package.xml": "<package/>",
    }
    written(tmp_path, files)
    for name in ("arm", "other"):
        for folder in ("ws", "ws/rods"):
            assert quiet(tmp_path / f"arms/{name}.xacro", package_dirs=[tmp_path / folder])[0].nv == 1
        with pytest.raises(jdyn.ModelError, match=r"package://rods.* is in no folder of package_dirs"):
            jdyn.load(tmp_path / f"arms/{name}.xacro")
    assert quiet(tmp_path / "near/rods/urdf/arm.xacro")[0].nv == 1
    assert quiet(tmp_path / "pkg/urdf/arm.xacro")[0].nv == 1
    mesh = "<visual><geometry><mesh filename='file://$(find nowhere)/a.stl'/></geometry></visual>"
    absent = f"<gazebo><plugin><parameters>$(find nowhere)/a.yaml</parameters></plugin></gazebo>{link('b', INERTIAL)}"
    file = written(tmp_path, {"own.xacro": body(absent + joint("k", "a", "b"))}) / "own.xacro"
    assert quiet(file)[1] == []
    file.write_text(body(link("b", INERTIAL + mesh.replace("file://", "")) + joint("k", "a", "b")))
    (words,) = quiet(file)[1]
    assert "in no folder of package_dirs: 'package://nowhere/a.stl'" in words


def test_what_is_optional_and_what_is_data(tmp_path):
    text = body("""<xacro:include filename="absent.xacro" optional="true"/>
        <xacro:property name="data" value="${xacro.load_yaml('data.yaml')}"/>
        <xacro:property name="kind" value="$(optenv JDYN_NO_SUCH_VARIABLE revolute)"/>
        <xacro:if value="${data.rod['mass'] > 1 and len(data.rod.keys()) == 2}">
          <link name="b"><inertial><mass value="${data.rod.mass}"/>
            <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
          <joint name="k" type="${kind}"><parent link="a"/><child link="b"/>
            <limit lower="0" upper="${data.rod.upper}" effort="1" velocity="1"/></joint></xacro:if>""")
    written(tmp_path, {"arm.xacro": text, "data.yaml": "rod: {mass: 4.0, upper: !degrees 90}"})
    model, words = quiet(tmp_path / "arm.xacro")
    assert not words and float(model.inertias.mass[1]) == 4 and abs(float(model.limits.upper[1]) - 1.5708) < 1e-4


HOSTILE = {
    "a class": ("${().__class__}", "__class__ is not allowed"),
    "a class in a comprehension": ("${[x for x in [1] if x.__class__]}", "__class__ is not allowed"),
    "a function": ("${(lambda: 1)()}", "Lambda is not allowed"),
    "a frame": ("${(x for x in [1]).gi_frame}", "gi_frame of a generator is not allowed"),
    "a template": ("${'words'.format(1)}", "format of a str is not allowed"),
    "contents": ("${python.vars(math)}", "nothing called vars"),
    "a type": ("${python['type'](1)}", "type"),
    # A property brings the brackets, at which xacro would end the expression.
    "an import": ("$(eval ${importing})", "__import__ is not allowed"),
    "a file": ("$(eval ${reading})", "'open' is not defined"),
    "data outside": ("${xacro.load_yaml('/etc/passwd')}", "/etc/passwd is outside"),
    "data above": ("${load_yaml('../../secret.yaml')}", "secret.yaml is outside"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_expressions_reach_nothing(name, tmp_path):
    expression, phrase = HOSTILE[name]
    text = body(f"""<xacro:property name="importing" value="__import__('os').getcwd()"/>
        <xacro:property name="reading" value="open('/etc/passwd').read()"/><gazebo reference="{expression}"/>""")
    file = written(tmp_path, {"folder/arm.xacro": text}) / "folder/arm.xacro"
    with pytest.raises(jdyn.ModelError) as caught:
        jdyn.load(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: xacro cannot expand it: ") and phrase in message and "\n" not in message


@pytest.mark.parametrize(
    "name, phrase",
    [
        ("/etc/hostname", "/etc/hostname is outside"),
        ("/etc/host*", "outside"),
        ("../secret.xacro", "secret.xacro is outside"),
        ("link.xacro", "link.xacro is outside"),
        ("package://../secret.xacro", "in no folder of package_dirs"),
        ("$(find ..)/secret.xacro", "in no folder of package_dirs"),
        ("$(find /etc)/hostname", "in no folder of package_dirs"),
        ("absent.xacro", "there is no file"),
        ("laughs.xacro", "document type declaration or entities"),
        ("itself.xacro", "recursion"),
        ("broken.xacro", "not well-formed XML at line 1"),
    ],
)
def test_files_outside_are_not_included(name, phrase, tmp_path):
    laughs = '<!DOCTYPE robot [<!ENTITY a "ha">]><robot name="&a;"/>'
    files = {
        "secret.xacro": f"{OPEN}</robot>",
        "folder/laughs.xacro": laughs,
        "folder/broken.xacro": "<robot",
        "folder/itself.xacro": f'{OPEN}<xacro:include filename="itself.xacro"/></robot>',
    }
    written(tmp_path, files)
    (tmp_path / "folder/link.xacro").symlink_to(tmp_path / "secret.xacro")
    file = written(tmp_path, {"folder/arm.xacro": body(f'<xacro:include filename="{name}"/>')}) / "folder/arm.xacro"
    with pytest.raises(jdyn.ModelError) as caught:
        jdyn.load(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: xacro cannot expand it: ") and phrase in message and "\n" not in message


@pytest.mark.parametrize(
    "text, phrases",
    [
        ("<xacro:arm/>", ["xacro cannot expand it", "unknown macro name: xacro:arm"]),
        ("${nobody}", ["'nobody' is not defined", "nobody"]),
        ("${1 +}", ["is no expression"]),
        (
            '<link name="b"><inertial><mass value="${1 - 2}"/></inertial></link>',
            ["expanded by xacro", "link 'b' (line"],
        ),
    ],
)
def test_mistakes_are_one_sentence(text, phrases, tmp_path):
    file = written(tmp_path, {"arm.xacro": body(text)}) / "arm.xacro"
    with pytest.raises(jdyn.ModelError) as caught:
        jdyn.load(file)
    assert [phrase for phrase in phrases if phrase not in str(caught.value)] == [], caught.value


def test_files_do_not_change_one_another_and_say_their_warnings(tmp_path, capfd):
    changed = body("<xacro:property name='pi' value='3'/><xacro:property name='x' value='${xacro.warning(pi)}'/>${x}")
    written(tmp_path, {"a.xacro": changed, "b.xacro": body("<gazebo>${xacro.warning(pi)}</gazebo>")})
    (words,) = quiet(tmp_path / "a.xacro")[1]
    assert "xacro says:" in words and "warning: 3" in words and "redefining" not in words
    (words,) = quiet(tmp_path / "b.xacro")[1]
    assert "warning: 3.14159" in words and capfd.readouterr() == ("", "")


def test_without_xacro(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    written(tmp_path, {"a.xacro": body("<gazebo>${1 + 1}</gazebo>"), "b.xacro": body("")})
    with pytest.raises(ImportError, match=r'expanded by xacro, which is not installed: pip install "jdyn\[xacro\]"'):
        jdyn.load(tmp_path / "a.xacro")
    plain = tmp_path / "b.xacro"
    plain.write_text(plain.read_text().replace(' xmlns:xacro="http://www.ros.org/wiki/xacro"', ""))
    assert quiet(plain)[0].nv == 1


def test_texts_are_not_expanded():
    with pytest.raises(jdyn.ModelError, match=r"load it from a file whose name ends in .xacro, or run xacro first"):
        jdyn.load(body("<xacro:arm/>"))
    assert LIMIT in body("")
