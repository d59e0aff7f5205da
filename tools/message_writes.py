"""The `write` of a structure."""

from __future__ import annotations

from message_facts import Facts
from message_spec import FIXED, Field, Struct
from message_text import INDENT, choice, indented, negated


class Writes(Facts):
    def write_lines(self, struct: Struct) -> list[str]:
        body = []
        for test, fields in self.plain_groups(struct):
            writes = [line for run in self.runs(fields) for line in self.write_run(run)]
            refusals = [line for field in fields if not field.tagged for line in self.refuse(field)]
            body += choice(test, writes, refusals)
        for field in self.tagged(struct):
            present = self.condition(field.versions)
            if present != "True" and not field.ignorable:
                _, refusal = self.refuse(field)
                body += [f"if {negated(present)} and {self.is_set(field)}:", refusal]
        body += self.write_tags(struct)
        body[0:0] = self.has_flexible_local(body)
        head = ["def write(self, out: bytearray, version: int) -> None:"]
        return [*head, *indented(body or ["pass"])]

    def refuse(self, field: Field) -> list[str]:
        if field.ignorable:
            return []
        self.message_names.add("not_in_version")
        attribute = field.attribute
        return [f"if {self.is_set(field)}:", f'{INDENT}raise not_in_version(self, "{attribute}", version)']

    def write_run(self, run: list[Field]) -> list[str]:
        if len(run) > 1:
            values = ", ".join(f"self.{field.attribute}" for field in run)
            return [f"out += {self.form([field.code or '' for field in run])}.pack({values})"]
        return self.write_field(run[0], "out")

    def write_field(self, field: Field, out: str) -> list[str]:
        value, flexible = f"self.{field.attribute}", self.flexible(field)
        null = self.condition(field.nullable, field.versions & self.valid)
        if field.code is not None:
            packed = value if field.code == "16s" else f"{self.form([field.code])}.pack({value})"
            return [f"{out} += {packed}"]
        if null == "False":
            return self.write_value(field, out, value, flexible)
        lines = self.refuse_null(field, value, null)
        if not field.is_array and field.kind in ("string", "bytes", "records"):
            name = "write_nullable_string" if field.kind == "string" else "write_nullable_bytes"
            self.codec_names.add(name)
            return [*lines, f"{name}({out}, {value}, {flexible})"]
        if field.is_struct and not field.is_array:
            # null is the byte -1, or 0 inside a tagged field: so does Kafka write it
            null_byte = 0 if field.tagged else 255
            present = [f"{out}.append(1)", *self.write_value(field, out, value, flexible)]
            return [*lines, f"if {value} is None:", f"{INDENT}{out}.append({null_byte})", "else:", *indented(present)]
        self.codec_names.add("write_null")
        written = indented(self.write_value(field, out, value, flexible))
        return [*lines, f"if {value} is None:", f"{INDENT}write_null({out}, {flexible})", "else:", *written]

    def refuse_null(self, field: Field, value: str, null: str) -> list[str]:
        if null == "True":
            return []
        self.message_names.add("null_in_version")
        error = f'null_in_version(self, "{field.attribute}", version)'
        return [f"if {value} is None and {negated(null)}:", f"{INDENT}raise {error}"]

    def write_value(self, field: Field, out: str, value: str, flexible: str) -> list[str]:
        if field.is_struct and not field.is_array:
            return [f"{value}.write({out}, version)"]
        if field.is_struct:
            self.message_names.add("write_structures")
            return [f"write_structures({out}, {value}, version, {flexible})"]
        if field.is_array and field.kind not in ("string", "uuid"):
            self.codec_names.add("write_ints")
            return [f'write_ints({out}, "{FIXED[field.kind]}", {value}, {flexible})']
        kind = "bytes" if field.kind == "records" else field.kind
        name = f"write_{kind}{'s' if field.is_array else ''}"
        self.codec_names.add(name)
        return [f"{name}({out}, {value}, {flexible})"]

    def write_tags(self, struct: Struct) -> list[str]:
        test = self.condition(self.message.flexible)
        if test == "False":
            return []
        guard = test if test == "True" else "flexible"
        tagged = self.tagged(struct)
        if not tagged:
            return choice(guard, ["out.append(0)"], [])
        self.codec_names.add("write_tags")
        lines = ["tags: list[tuple[int, bytearray]] = []"]
        for field in tagged:
            present = self.condition(field.versions, self.message.flexible & self.valid)
            also = "" if present == "True" else f"{present} and "
            lines += [f"if {also}{self.is_set(field)}:", f"{INDENT}value = bytearray()"]
            lines += [*indented(self.write_field(field, "value")), f"{INDENT}tags.append(({field.tag}, value))"]
        return choice(guard, [*lines, "write_tags(out, tags)"], [])
