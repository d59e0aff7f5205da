"""`sasl.jaas.config`: what Java accepts is read the same, and a mistake is told without its secrets."""

from __future__ import annotations

import pytest

from penstock.wire.jaas import JaasError, parse

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ('username="alice" password="pw"', {"username": "alice", "password": "pw"}),
        ("username='alice' password='p\"w'", {"username": "alice", "password": 'p"w'}),
        ("username=alice password=pw-1_$.x", {"username": "alice", "password": "pw-1_$.x"}),
        (r'password="a\"b\\c\td\101"', {"password": 'a"b\\c\tdA'}),
        ('password="a;b=c //d"', {"password": "a;b=c //d"}),
        ('\n  username = "alice" // who\n /* the\n secret */ password="pw"\n', {"username": "alice", "password": "pw"}),
        ('password=""', {"password": ""}),
        ("", {}),
    ],
)
def test_options_are_read_as_java_reads_them(options: str, read: dict[str, str]) -> None:
    module = parse(f"{PLAIN} required {options};")
    assert module.name == PLAIN
    assert module.options == read


@pytest.mark.parametrize("flag", ["required", "Requisite", "sufficient", "OPTIONAL"])
def test_any_flag_will_do(flag: str) -> None:
    assert parse(f"{PLAIN} {flag} a=b ;").options == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the class of a login module"),
        (PLAIN, "a flag after the login module"),
        (f"{PLAIN} perhaps a=b;", "is one of required"),
        (f'{PLAIN} required username="alice" password="hush-hush"', "a semicolon at the end"),
        (f'{PLAIN} required username="alice" password "hush-hush";', "= after password"),
        (f"{PLAIN} required password=;", "a value for password"),
        (f'{PLAIN} required password="hush-hush;', "a quote may be missing"),
        (f"{PLAIN} required password=hush-hush!;", "a quote may be missing"),
        (f'{PLAIN} required "hush-hush";', "a semicolon at the end"),
        (f'{PLAIN} required password="hush-hush" password="b";', "password is given twice"),
        (f"{PLAIN} required; {PLAIN} required;", "more than one login module"),
    ],
)
def test_a_mistake_is_named_and_no_secret_repeated(text: str, said: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_module_does_not_show_its_options() -> None:
    assert "hush-hush" not in repr(parse(f'{PLAIN} required password="hush-hush";'))
