"""XML from untrusted sources: limited in size and depth, without DTD, entities or external references."""

import codecs
import dataclasses
import os
import pathlib
import re
from collections.abc import Iterator
from xml.parsers import expat
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from jdyn.model import ModelError

MAX_BYTES = 32 * 2**20
MAX_DEPTH = 500
MAX_ELEMENTS = 500_000

_FIRST_CHUNK = 2**16
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_ENCODINGS = ("utf-8", "ascii", "iso8859-1", "cp1252")
# What must not, but may stand before the declaration.
_BEFORE = r"(?>\s+|<!--.*?-->)*+"
_DECLARATION = re.compile(_BEFORE + r"(<\?xml\s[^>]*\?>)", re.DOTALL)
_DECLARED_ENCODING = re.compile(
    _BEFORE.encode() + rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""", re.DOTALL
)


@dataclasses.dataclass(slots=True)
class Element:
    """One XML element.

    Attributes:
        tag: Name without its prefix.
        namespace: URI of the namespace, empty if there is none; the prefix if the document does not declare it.
        attributes: Values by name, with its prefix.
        line: Line on which the element starts.
        text: Character data directly inside the element.
        children: Elements directly inside.
    """

    tag: str
    namespace: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list["Element"] = dataclasses.field(default_factory=list)

    def all(self, tag: str) -> list["Element"]:
        """The children with this tag and the element's own namespace, in order."""
        return [child for child in self.children if child.tag == tag and child.namespace == self.namespace]

    def first(self, tag: str) -> "Element | None":
        """The first of `all(tag)`."""
        return next(iter(self.all(tag)), None)

    def walk(self) -> Iterator["Element"]:
        """The element and everything below it, in document order."""
        stack: list[Element] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


def read(source: str | os.PathLike, what: str) -> tuple[str, str, pathlib.Path | None]:
    """The text of an XML document.

    Args:
        source: A path, or the XML text itself: a string whose first visible character is `<`.
        what: What the document should be, for messages, such as `"URDF"`.

    Returns:
        The text, a label for messages, and the folder of the file (`None` if there is no file).

    Raises:
        ModelError: if there is no such file, or it cannot be read, is too large, or is not text.
    """
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"source: expected a path or {what} text, got {type(source).__name__}")
    if isinstance(source, str) and (text := source.lstrip("\ufeff \t\r\n"))[:1] in ("<", ""):
        if not text:
            raise ModelError(f"{what} text: it is empty; give the path of a file or its text")
        _check_size(len(text), f"{what} text")
        return text, f"{what} text", None
    path = pathlib.Path(source)
    return decoded(_bytes(path, what), str(path)), str(path), path.absolute().parent


def _bytes(path: pathlib.Path, what: str) -> bytes:
    shown = str(path) if len(str(path)) <= 200 else f"{str(path)[:200]}..."
    try:
        if not path.exists():
            raise ModelError(
                f"{shown}: there is no such file; give the path of a {what} file, or its text (starting with '<')"
            )
        if not path.is_file():
            raise ModelError(f"{shown}: expected a {what} file, got a folder or a device")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{shown}: cannot be read ({error}); give the path of a {what} file, or its text") from None
    _check_size(len(data), shown)
    return data


def _check_size(size: int, label: str):
    if size > MAX_BYTES:
        raise ModelError(f"{label}: larger than {MAX_BYTES // 2**20} MB, too large for a robot description")


def decoded(data: bytes, label: str) -> str:
    """The text of a file.

    Raises:
        ModelError: if its encoding is unusual, or it is not text in this.
    """
    encoding = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), None)
    if encoding is None:
        declared = _DECLARED_ENCODING.match(data)
        encoding = "utf-8" if declared is None else declared[1].decode("ascii")
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError:
            pass
        if encoding not in _ENCODINGS:
            raise ModelError(f"{label}: its XML declaration names the encoding {encoding!r}; save the file as UTF-8")
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"{label}: not text in {encoding.upper()} (byte {error.start} does not decode); "
            "is it an XML file? If so, save it as UTF-8"
        ) from None


class _Refused(Exception):
    """The document is well-formed so far, but too deep or too large."""


class _Tree(ContentHandler):
    """Receives the parser's events and builds the tree."""

    def __init__(self, parser: DefusedExpatParser):
        super().__init__()
        self._parser = parser
        self.root: Element | None = None
        self._namespaces: dict[str, str] = {}
        # With the pieces of their text, and what prefixes meant around them that they declare anew.
        self._open: list[tuple[Element, list[str], dict[str, str | None]]] = []
        self._count = 0

    def startElement(self, name, attrs):
        self._count += 1
        if len(self._open) >= MAX_DEPTH:
            raise _Refused(f"elements are nested more than {MAX_DEPTH} deep")
        if self._count > MAX_ELEMENTS:
            raise _Refused(f"it has more than {MAX_ELEMENTS} elements, too many for a robot description")
        attributes = dict(attrs.items())
        declared = [key for key in attributes if key == "xmlns" or key.startswith("xmlns:")]
        around = {key[6:]: self._namespaces.get(key[6:]) for key in declared}
        self._namespaces.update((key[6:], attributes.pop(key)) for key in declared)
        prefix, _, tag = name.rpartition(":")
        element = Element(tag, self._namespaces.get(prefix, prefix), attributes, self._parser.getLineNumber() or 0)
        if self._open:
            self._open[-1][0].children.append(element)
        else:
            self.root = element
        self._open.append((element, [], around))

    def characters(self, content):
        self._open[-1][1].append(content)

    def endElement(self, name):
        element, pieces, around = self._open.pop()
        element.text = "".join(pieces).strip()
        for prefix, namespace in around.items():
            if namespace is None:
                del self._namespaces[prefix]
            else:
                self._namespaces[prefix] = namespace


def parse(text: str, label: str) -> Element:
    """The root element of a document; nothing outside `text` is read.

    Raises:
        ModelError: if the text is not well-formed XML, has a DTD or entities, or is too deep or too large.
    """
    # Prefixes that a document does not declare are common, and an error for parsers that resolve namespaces.
    parser = DefusedExpatParser(namespaceHandling=0, forbid_dtd=True)
    tree = _Tree(parser)
    parser.setContentHandler(tree)
    try:
        text.encode("utf-8")
        if (late := _DECLARATION.match(text)) and late.start(1) > 0:
            # Only allowed at the start; spaces keep the lines and columns of the rest.
            text = text[: late.start(1)] + re.sub(r"[^\n]", " ", late[1]) + text[late.end(1) :]
        start, size = 0, _FIRST_CHUNK
        # Pieces of doubling size: a refusal stops early, and a token that spans pieces is rescanned only a few times.
        while start < len(text) or start == 0:
            parser.feed(text[start : start + size])
            start, size = start + size, 2 * size
        parser.close()
    except UnicodeEncodeError as error:
        raise ModelError(f"{label}: character {error.start} is half of a surrogate pair, not text") from None
    except DefusedXmlException:
        raise ModelError(
            f"{label}: has a document type declaration or entities (<!DOCTYPE ...>); remove them"
        ) from None
    except _Refused as error:
        raise ModelError(f"{label}: {error}") from None
    except SAXParseException as error:
        raise ModelError(f"{label}: {_in_words(error)}") from None
    if tree.root is None:
        raise ModelError(f"{label}: there is no XML element")
    return tree.root


def harmless(text: str, label: str) -> bytes:
    """A document that keeps the limits of `parse`, in UTF-8 and without its declaration, so that every other parser
    finds the text that was checked.

    Raises:
        ModelError: as `parse`.
    """
    parse(text, label)
    declared = _DECLARATION.match(text)
    return (text if declared is None else text[: declared.start(1)] + text[declared.end(1) :]).encode()


def _in_words(error: SAXParseException) -> str:
    what = error.getMessage()
    text = f"not well-formed XML at line {error.getLineNumber()}, column {(error.getColumnNumber() or 0) + 1}: {what}"
    if what == expat.errors.XML_ERROR_NO_ELEMENTS:
        text += " (the text ends before the root element does)"
    return text
