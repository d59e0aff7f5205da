"""What must not be null: columns labelled so, and the rows that break it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def requires(kind: pa.DataType) -> bool:
    """Whether something in it must not be null."""
    inner = [kind.field(at) for at in range(kind.num_fields)]
    return any(not one.nullable or requires(one.type) for one in inner)


def incomplete(values: pa.Array, kind: pa.DataType, nullable: bool = True) -> pa.Array:
    """True for each row where something is null that its type says is not."""
    return pa.array(_incomplete(values, kind, nullable))


def _incomplete(values: pa.Array, kind: pa.DataType, nullable: bool) -> npt.NDArray[np.bool_]:
    null = np.asarray(pc.is_null(values))
    found = np.zeros(len(values), bool) if nullable else null
    if pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            field = kind.field(at)
            if not field.nullable or requires(field.type):
                found = found | (_incomplete(values.field(at), field.type, field.nullable) & ~null)
    elif pa.types.is_map(kind):
        found = found | _any_item(values, values.items, kind.item_field)
    elif pa.types.is_list(kind):
        found = found | _any_item(values, values.values, kind.value_field)
    return found


def _any_item(values: pa.Array, items: pa.Array, field: pa.Field) -> npt.NDArray[np.bool_]:
    if field.nullable and not requires(field.type):
        return np.zeros(len(values), bool)
    bad = np.concatenate(([0], np.cumsum(_incomplete(items, field.type, field.nullable))))
    offsets = np.asarray(values.offsets)
    return np.asarray((bad[offsets[1:]] > bad[offsets[:-1]]) & ~np.asarray(pc.is_null(values)), bool)


def retyped(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A cast that lets a member be null, whatever its type says, where what holds it is null (Arrow's may not)."""
    mask = pc.is_null(values) if values.null_count else None
    if values.type == kind:
        return values
    if pa.types.is_struct(kind) and kind.num_fields and values.type.num_fields == kind.num_fields:
        members = [retyped(values.field(at), kind.field(at).type) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(values.offsets, retyped(values.values, kind.value_type), type=kind, mask=mask)
    return values.cast(kind)
