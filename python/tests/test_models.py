"""Models of the kernel around programs."""

from pathlib import Path

import pytest

import beebox

CALL = '{ p: @shell, bprm: { filename: "/usr/bin/ls" } }'


@pytest.fixture
def tools(examples: Path) -> beebox.Instance:
    return beebox.Object(examples / "tools/execsnoop.bpf.o").load(models=True)


def given(instance: beebox.Instance) -> beebox.Model:
    model = instance.model()
    model.declare("init", "task_struct")
    model.give("shell", 'task_struct { tgid: 7, comm: "bash", real_parent: @init }')
    model.give("init", {"tgid": 1})
    return model


def test_a_program_sees_what_is_given(tools: beebox.Instance) -> None:
    model = given(tools)
    result = tools.program("on_exec").model_run(model, CALL)
    assert result.retval == 0
    event = result.records[0].value
    assert (event.pid, event.ppid, event.filename) == (7, 1, "/usr/bin/ls")
    assert model.difference("shell", "tgid", 7) is None
    assert model.difference("shell", "tgid", 8) == "tgid: expected 8, got 7"


def test_what_was_not_given_is_named(tools: beebox.Instance) -> None:
    model = tools.model()
    with pytest.raises(beebox.TrapError, match=r"task_struct\.real_parent of argument p was not"):
        tools.program("on_exec").model_run(model, "{ p: { tgid: 7 }, bprm: { filename: null } }")


def test_copies_are_apart(tools: beebox.Instance) -> None:
    model = given(tools)
    other = model.copy()
    other.give("init", {"tgid": 9})
    run = tools.program("on_exec").model_run
    assert run(other, CALL).records[0].value.ppid == 9
    assert run(model, CALL).records[0].value.ppid == 1


def test_helpers_fail_on_purpose(tools: beebox.Instance, examples: Path) -> None:
    model = given(tools)
    model.result("bpf_ringbuf_reserve", "null", at=2)
    run = tools.program("on_exec").model_run
    assert [len(run(model, CALL).records) for _ in range(3)] == [1, 0, 1]
    firewall = beebox.Object(examples / "packets/firewall.bpf.o").load()
    faults = firewall.model()
    faults.result("bpf_map_lookup_elem", "null")
    assert firewall.program("firewall").test_run(bytes(64), model=faults).verdict == "XDP_PASS"
    assert faults.calls[0].startswith("bpf_map_lookup_elem {map: ")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("task_strct {}", "no type task_strct"),
        ("task_struct { pdi: 7 }", "column 15: task_struct has no member pdi"),
        ("task_struct { pid: ", "column 20: a value is expected"),
        (7, "takes"),
    ],
)
def test_mistakes_are_named(tools: beebox.Instance, value: str | int, words: str) -> None:
    with pytest.raises(beebox.Error, match=words):
        tools.model().give("a", value)


def test_programs_of_models_need_the_option(examples: Path) -> None:
    with pytest.raises(beebox.Error, match="a model of the kernel"):
        beebox.Object(examples / "tools/execsnoop.bpf.o").load()
