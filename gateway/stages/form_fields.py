"""The names of a form's fields while its bytes pass by (multipart/form-data, RFC 7578): which part names the model.

Decided here: what counts as a field's name, and that a form whose names could be read in two ways is refused: engines
might read the other one. Parts' contents are never kept; of a part's head at most ``_HEAD_BYTES`` are. Not decided
here: what a model's name means (``form``).
"""

from __future__ import annotations

import re

from gateway.errors import InvalidRequest

_HEAD_BYTES = 8 * 1024
_VALUE_BYTES = 256
_DISPOSITION = re.compile(rb"^content-disposition[ \t]*:(.*)$", re.IGNORECASE | re.MULTILINE)
# The name as browsers, curl and Python's clients write it: quoted and plain, or a token. What could be read in another
# way (name*=, name*0=, a backslash, a line that goes on) is not this.
_NAME = re.compile(rb'^[ \t]*form-data[ \t]*;[ \t]*name=(?:"([^"\\]*)"|([^\s";,]+))[ \t]*(?:;(.*))?$', re.IGNORECASE)
_NAME_AGAIN = re.compile(rb"(?:^|;)[ \t]*name[*\d]*[ \t]*=", re.IGNORECASE)
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BOUNDARY = re.compile(r';[ \t]*boundary=(?:"([^"\\]{1,70})"|([^\s";,]{1,70}))', re.IGNORECASE)
_BOUNDARY_LIKE = re.compile(r"[; \t]boundary[*\d]*[ \t]*=", re.IGNORECASE)


def boundary_of(content_type: str) -> bytes:
    """What separates the parts. Raises InvalidRequest where there is none, or more than one."""
    found = _BOUNDARY.findall(content_type)
    if len(found) != 1 or len(_BOUNDARY_LIKE.findall(content_type)) != 1:
        raise InvalidRequest("A form has one boundary.", part="Content-Type")
    text: str = found[0][0] or found[0][1]
    return text.encode("utf-8", "surrogateescape")


class FormFields:
    """Fed with a form's bytes in order. ``model`` is the value of its field once that is read; ``value_at`` where it
    stands among all bytes. Raises InvalidRequest for a second such field, and for a head that cannot be read."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\r\n--" + boundary
        self._rest = b"\r\n"  # the first delimiter stands at the very start, without a line's end before it
        self._base = -2  # where ``_rest`` begins among all bytes
        self._in_head = False
        self._in_model = False
        self._ended = False
        self._names_model = False
        self.model: bytes | None = None
        self.value_at = 0

    def feed(self, piece: bytes) -> None:
        """The next bytes; an empty piece changes nothing."""
        self._rest += piece
        while not self._ended and (self._head() if self._in_head else self._content()):
            pass
        if self._ended:
            self._drop(len(self._rest))

    def _content(self) -> bool:
        """Up to the next delimiter; whether there may be more to see."""
        at = self._rest.find(self._delimiter)
        if self._in_model:
            self._note_value(at)
        if at < 0:
            if not self._in_model:
                self._drop(max(0, len(self._rest) - len(self._delimiter) + 1))
            return False
        after = at + len(self._delimiter)
        if len(self._rest) < after + 2:
            self._drop(at)
            return False
        line = self._rest[after : after + 2]
        self._ended = line == b"--"
        self._in_head = line == b"\r\n"
        # Anything else begins with the boundary's text and is none; engines differ about it.
        if not self._ended and not self._in_head:
            raise InvalidRequest("A boundary of the form is followed by something else than a line's end.", part="body")
        self._drop(after)
        return True

    def _note_value(self, end: int) -> None:
        if max(end, len(self._rest) - len(self._delimiter) if end < 0 else 0) > _VALUE_BYTES:
            raise InvalidRequest("A model is named by a short string.", part="model")
        if end >= 0:
            # Noted once: what follows the delimiter may come later, and then the value is no longer at hand.
            self.model, self.value_at, self._in_model = self._rest[:end], self._base, False

    def _head(self) -> bool:
        end = self._rest.find(b"\r\n\r\n")
        if end > _HEAD_BYTES or (end < 0 and len(self._rest) > _HEAD_BYTES):
            raise InvalidRequest("The head of a form's part is too long.", part="body")
        if end < 0:
            return False
        name = _name_in(self._rest[:end])
        self._in_head = False
        self._drop(end + 4)
        if name == b"model":
            if self._names_model:
                raise InvalidRequest("The form names its model twice.", part="model")
            self._names_model = self._in_model = True
        return True

    def _drop(self, count: int) -> None:
        self._rest = self._rest[count:]
        self._base += count


def _name_in(head: bytes) -> bytes:
    found = _DISPOSITION.findall(head.replace(b"\r\n", b"\n"))
    named = _NAME.match(found[0]) if len(found) == 1 else None
    folded = b"\n " in head or b"\n\t" in head
    if named is None or folded or _NAME_AGAIN.search(_QUOTED.sub(b"", named[3] or b"")):
        raise InvalidRequest("A part of the form does not say plainly which field it is.", part="body")
    return named[1] if named[1] is not None else named[2]
