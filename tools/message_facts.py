"""What the code of a message depends on: defaults, version tests, formats; and what its module has to import."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from message_spec import SIZES, Field, Message, Struct, Versions

CODEC_NAMES = {"?": "BOOL", "b": "INT8", "h": "INT16", "H": "UINT16", "i": "INT32", "I": "UINT32", "q": "INT64"}
CODEC_NAMES |= {"d": "FLOAT64"}


class Facts:
    """One message; `valid` are the versions in which the structure at hand occurs."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.structs = {struct.name: struct for struct in message.structs}
        self.codec_names: set[str] = {"Reader"}
        self.message_names: set[str] = {"Message"}
        self.formats: dict[str, str] = {}
        self.reachable = reachable_versions(message)
        self.valid = message.versions

    def default(self, field: Field) -> str:
        if field.default == "null":
            return "None"
        if field.is_array:
            return "[]"
        if field.is_struct:
            return f"{field.kind}()"
        if field.kind == "records":
            return "None" if field.nullable & self.message.versions else 'b""'
        if field.kind == "uuid":
            self.message_names.add("ZERO_ID")
            return "ZERO_ID"
        if field.kind in ("string", "bytes"):
            assert not field.default, "no specification gives a text of its own as default"
            return '""' if field.kind == "string" else 'b""'
        if field.kind == "bool":
            return str(field.default == "true")
        return str(float(field.default or 0)) if field.kind == "float64" else str(int(field.default or "0", 0))

    def is_set(self, field: Field) -> str:
        """The test that a field differs from its default."""
        default, value = self.default(field), f"self.{field.attribute}"
        if default == "None":
            return f"{value} is not None"
        if default in ("True", "False"):
            return value if default == "False" else f"not {value}"
        return f"{value} != {default}"

    def condition(self, versions: Versions, within: Versions | None = None) -> str:
        """A test of `version`, or "True" or "False" where the structure occurs in no version that could tell."""
        valid = within or self.valid
        both = versions & valid
        if not both:
            return "False"
        low, high = both.low > valid.low, both.high < valid.high
        if low and high:
            return f"version == {both.low}" if both.low == both.high else f"{both.low} <= version <= {both.high}"
        if low:
            return f"version >= {both.low}"
        return f"version <= {both.high}" if high else "True"

    def flexible(self, field: Field) -> str:
        """The value of the `flexible` argument where this field is read or written."""
        if field.tagged or field.never_flexible:
            return str(bool(field.tagged))
        test = self.condition(self.message.flexible)
        return test if test in ("True", "False") else "flexible"

    def has_flexible_local(self, lines: list[str]) -> list[str]:
        test = self.condition(self.message.flexible)
        if test in ("True", "False") or not any("flexible" in line.replace("_flexible", "") for line in lines):
            return []
        return [f"flexible = {test}"]

    def runs(self, fields: list[Field]) -> Iterator[list[Field]]:
        """Neighbours of fixed width go through one struct format."""
        for fixed, group in groupby(fields, key=lambda field: field.code is not None):
            if fixed:
                yield list(group)
            else:
                yield from ([field] for field in group)

    def plain_groups(self, struct: Struct) -> Iterator[tuple[str, list[Field]]]:
        """Fields that are written in their place, in groups that share one version test."""
        plain = [(self.plain_versions(field), field) for field in struct.fields]
        for test, group in groupby(plain, key=lambda pair: self.condition(pair[0])):
            yield test, [field for _, field in group]

    def plain_versions(self, field: Field) -> Versions:
        """No field of the protocol is plain in some versions and tagged in others."""
        assert not field.tagged or not (field.versions & self.valid) or field.tagged == field.versions
        return Versions(0, -1) if field.tagged else field.versions

    def tagged(self, struct: Struct) -> list[Field]:
        return sorted(
            (field for field in struct.fields if field.tagged and field.versions & self.valid),
            key=lambda field: field.tag,
        )

    def form(self, codes: list[str]) -> str:
        if len(codes) == 1 and codes[0] in CODEC_NAMES:
            self.codec_names.add(CODEC_NAMES[codes[0]])
            return CODEC_NAMES[codes[0]]
        form = "".join(codes)
        return self.formats.setdefault(form, "_" + form.replace("16s", "u").replace("?", "o"))

    def minimal_size(self, struct: Struct) -> int:
        """The fewest bytes one element can take, in any version: what a declared count is measured by."""
        return max(1, min(self.minimal_in(struct, version) for version in self.reachable[struct.name].numbers()))

    def minimal_in(self, struct: Struct, version: int) -> int:
        flexible = version in self.message.flexible
        size = 1 if flexible else 0
        for field in struct.fields:
            if field.tagged or version not in field.versions:
                continue
            if field.code is not None:
                size += SIZES[field.code]
            elif field.is_struct and not field.is_array:
                size += 1 if version in field.nullable else self.minimal_in(self.structs[field.kind], version)
            elif flexible and not field.never_flexible:
                size += 1
            else:
                size += 2 if field.kind == "string" and not field.is_array else 4
        return size


def reachable_versions(message: Message) -> dict[str, Versions]:
    """For each structure the versions in which a field of the message leads to it."""
    fields = {struct.name: struct.fields for struct in message.structs}
    found: dict[str, Versions] = {}

    def visit(name: str, versions: Versions) -> None:
        known = found.get(name, versions)
        found[name] = Versions(min(known.low, versions.low), max(known.high, versions.high))
        for field in fields[name]:
            if field.is_struct and field.versions & versions:
                visit(field.kind, field.versions & versions)

    visit(message.name, message.versions)
    return found
