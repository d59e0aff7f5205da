"""The command as a whole: help, exit codes, what it says when something is wrong, what it imports."""

import json
import subprocess
import sys

import pytest

from penstock.cli import main as entry
from penstock.cli.main import COMMANDS, build, main, names


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown for name in names())


def test_no_arguments_and_unknown_commands_are_usage_errors(capsys):
    assert main([]) == 2
    assert main(["topc"]) == 2
    assert "did you mean `penstock topic`?" in capsys.readouterr().err


def test_an_option_in_front_of_the_command_is_put_behind_it(capsys):
    assert main(["-b", "there:9092", "topic", "ls"]) == 2
    assert "options go behind the command: `penstock topic ls -b there:9092`" in capsys.readouterr().err


def test_what_is_to_be_typed_instead_is_quoted_and_shows_no_secret(capsys):
    secrets = ["-X", "sasl.password=hunter2", "-Xssl.key.pem=hunter2\nhunter2"]
    assert main([*secrets, "--set=ssl.key.password=hunter2", "--filter", "key=a", "produce", "orders", "a value"]) == 2
    said = capsys.readouterr().err
    options = "-X sasl.password=... -Xssl.key.pem=... --set=ssl.key.password=... --filter key=a"
    assert f"`penstock produce orders 'a value' {options}`" in said
    assert "hunter2" not in said


def test_an_option_that_an_action_does_not_know_shows_how_the_action_is_used(capsys):
    assert main(["topic", "create", "orders", "--replicas", "2"]) == 2
    said = capsys.readouterr().err
    assert "usage: penstock topic create" in said and "REPLICATION_FACTOR" in said
    assert "unrecognized arguments: --replicas 2" in said


def test_a_group_of_actions_without_one_is_a_usage_error(capsys):
    assert main(["topic"]) == 2
    assert "create" in capsys.readouterr().err


@pytest.mark.parametrize("name", names())
def test_every_command_has_help_and_takes_a_format(name, capsys):
    assert main([name, "--help"]) == 0
    parser = build(name)
    actions = next((a.choices for a in parser._actions if a.choices and hasattr(a.choices, "values")), None)
    parsers = list(actions.values()) if actions else [parser]
    assert all("--format" in p.format_help() for p in parsers)


def test_nothing_listening_says_what_to_do(capsys):
    assert main(["topic", "ls", "-b", "localhost:1"]) == 1
    said = capsys.readouterr().err
    assert "nothing listens on localhost:1" in said
    assert "penstock up" in said


def test_errors_are_json_where_json_was_asked_for(capsys):
    assert main(["topic", "ls", "-b", "localhost:1", "--format", "json"]) == 1
    assert "localhost:1" in json.loads(capsys.readouterr().err)["error"]


def test_a_cluster_of_nobody_is_refused(capsys):
    assert main(["up", "--nodes", "0"]) == 2
    assert "at least one" in capsys.readouterr().err


def test_an_interrupt_is_quiet(monkeypatch, capsys):
    monkeypatch.setattr(entry, "build", lambda name: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["version"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_while_the_cause_is_looked_for_is_quiet(monkeypatch, capsys):
    def fails(_):
        raise OSError

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "build", fails)
    monkeypatch.setattr(entry, "explain", interrupted)
    assert main(["version"]) == 130
    assert capsys.readouterr() == ("", "")


def test_what_is_said_to_a_closed_stderr_does_not_go_to_stdout():
    script = f"{sys.executable} -m penstock.cli.main topc 2>&-"
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")


def test_version_is_json_on_request(capsys):
    assert main(["version", "--format", "json"]) == 0
    assert "penstock" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_actions_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("consume", "offset-delete", "bootstrap-server"))


def test_the_bash_completion_completes():
    script = f"""
    source <({sys.executable} -m penstock.cli.main completion bash)
    COMP_WORDS=(penstock gro); COMP_CWORD=1; _penstock; echo "${{COMPREPLY[@]}}"
    COMP_WORDS=(penstock group reset --dr); COMP_CWORD=3; _penstock; echo "${{COMPREPLY[@]}}"
    COMP_WORDS=(penstock consume orders --fol); COMP_CWORD=3; _penstock; echo "${{COMPREPLY[@]}}"
    """
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == ["group", "--dry-run", "--follow"]


@pytest.mark.parametrize("arguments", [["--help"], ["up", "--help"], ["--version"]])
def test_a_quick_start_imports_neither_client_nor_rich(arguments):
    code = (
        "import sys; from penstock.cli.main import main; main(sys.argv[1:]); "
        "heavy = ('confluent_kafka', 'rich', 'msgspec', 'asyncio'); "
        "sys.exit(','.join(m for m in heavy if m in sys.modules) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr


def test_values_that_begin_with_a_dash_reach_their_option():
    args = build("consume").parse_args(entry._join_negatives(["orders", "-o", "-10", "-n", "3"]))
    assert (args.offset, args.count) == ("-10", 3)
    args = build("topic").parse_args(entry._join_negatives(["offsets", "orders", "--at", "-1h"]))
    assert args.at == "-1h"


def test_summaries_are_phrases():
    assert all(s[0].islower() and not s.endswith(".") for group in COMMANDS.values() for s in group.values())
