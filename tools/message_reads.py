"""The `read` of a structure."""

from __future__ import annotations

from message_facts import Facts
from message_spec import FIXED, SIZES, Field, Struct
from message_text import INDENT, choice, indented

METHODS = {"?": "boolean", "b": "int8", "h": "int16", "H": "uint16", "i": "int32", "I": "uint32", "q": "int64"}
METHODS |= {"d": "float64", "16s": "uuid"}


class Reads(Facts):
    def read_lines(self, struct: Struct) -> list[str]:
        body = ["self = cls.__new__(cls)"]
        for test, fields in self.plain_groups(struct):
            reads = [line for run in self.runs(fields) for line in self.read_run(run)]
            defaults = [f"self.{field.attribute} = {self.default(field)}" for field in fields]
            body += choice(test, reads, defaults)
        body += self.read_tags(struct)
        body[1:1] = self.has_flexible_local(body)
        head = ["@classmethod", f"def read(cls, reader: Reader, version: int) -> {struct.name}:"]
        return [*head, *indented(body), f"{INDENT}return self"]

    def read_run(self, run: list[Field]) -> list[str]:
        if len(run) > 1:
            targets = ", ".join(f"self.{field.attribute}" for field in run)
            return [f"{targets} = reader.unpack({self.form([field.code or '' for field in run])})"]
        return self.read_field(run[0])

    def read_field(self, field: Field) -> list[str]:
        target, flexible = f"self.{field.attribute}", self.flexible(field)
        null = self.condition(field.nullable, field.versions & self.valid)
        if field.code is not None:
            return [f"{target} = reader.{METHODS[field.code]}()"]
        if field.is_array and field.is_struct:
            return self.read_structs(field, target, flexible, null)
        if field.is_struct:
            read = f"{field.kind}.read(reader, version)"
            if null == "False":
                return [f"{target} = {read}"]
            present = "reader.uvarint() > 0" if field.tagged else "reader.present()"
            return [f"{target} = {read} if {present} else None"]
        name, arguments = self.reader_call(field, flexible)
        may_be_null = f"reader.nullable_{name}({arguments})"
        never_null = f"reader.{name}({arguments})"
        if null in ("True", "False"):
            return [f"{target} = {may_be_null if null == 'True' else never_null}"]
        return [f"{target} = {may_be_null} if {null} else {never_null}"]

    def reader_call(self, field: Field, flexible: str) -> tuple[str, str]:
        if not field.is_array:
            return "data" if field.kind == "bytes" else field.kind, flexible
        if field.kind == "string":
            return "strings", flexible
        if field.kind == "uuid":
            return "uuids", flexible
        code = FIXED[field.kind]
        return "ints", f'"{code}", {SIZES[code]}, {flexible}'

    def read_structs(self, field: Field, target: str, flexible: str, null: str) -> list[str]:
        minimal = self.minimal_size(self.structs[field.kind])
        arguments = f"{field.kind}, reader, version, {flexible}, {minimal}"
        if null == "False":
            self.message_names.add("read_structures")
            return [f"{target} = read_structures({arguments})"]
        self.message_names.add("read_nullable_structures")
        if null == "True":
            return [f"{target} = read_nullable_structures({arguments})"]
        return [f"{target} = read_nullable_structures({arguments}, {null})"]

    def read_tags(self, struct: Struct) -> list[str]:
        test = self.condition(self.message.flexible)
        if test == "False":
            return []
        tagged = self.tagged(struct)
        if not tagged:
            return choice(test if test == "True" else "flexible", ["reader.skip_tags()"], [])
        lines = ["for tag in reader.tags():"]
        for number, field in enumerate(tagged):
            present = self.condition(field.versions, self.message.flexible & self.valid)
            also = "" if present == "True" else f" and {present}"
            lines.append(f"{INDENT}{'elif' if number else 'if'} tag == {field.tag}{also}:")
            lines += indented(self.read_field(field), 2)
        lines += [f"{INDENT}else:", f"{INDENT * 2}reader.skip_tag()"]
        return choice(test if test == "True" else "flexible", lines, [])
