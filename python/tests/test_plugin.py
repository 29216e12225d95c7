"""The plugin of pytest, in runs of its own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TEST = """
import pytest

pytestmark = pytest.mark.bpf_object("firewall.bpf.o")

def test_passes(bpf_program, kernel):
    assert bpf_program.test_run(bytes(64)).verdict == "XDP_PASS"

def test_fails(bpf_program):
    packet = bytes(12) + bytes.fromhex("0800 4500001400000000400000000a000001c0000207") + bytes(20)
    assert bpf_program.test_run(packet).verdict == "XDP_DROP"

def test_fails_elsewhere(bpf_program, bpf_instance):
    result = bpf_program.test_run(bytes(64))
    assert result.retval == 1

def test_is_refused(bpf_object):
    import beebox
    beebox.Object("record.bpf.o").load()
"""


@pytest.fixture
def project(pytester: pytest.Pytester, examples: Path) -> pytest.Pytester:
    for name in ("packets/firewall.bpf.o", "verify/record.bpf.o"):
        (pytester.path / Path(name).name).write_bytes((examples / name).read_bytes())
    (pytester.path / "firewall.expect").write_text("run firewall zero:60\nverdict XDP_PASS\n")
    (pytester.path / "of_nothing.expect").write_text("no object is beside it")
    pytester.makepyfile(test_firewall=TEST)
    return pytester


def test_failures_show_packet_verdict_and_maps(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-p", "no:cacheprovider", "test_firewall.py")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*'XDP_PASS' == 'XDP_DROP'*",
            "*firewall (xdp): XDP_PASS (2)*",
            "*beebox: run ---*",
            "*ip*src 10.0.0.1, dst 192.0.2.7*",
            "*unchanged*",
            "*map actions (percpu_array):*",
            "*beebox: run result*",
            "*global checks_ports = True*",
            "*beebox: explanation*",
            "*the path ends without releasing*",
            "*beebox: log*",
        ]
    )


ELSEWHERE = """
import pytest

pytestmark = pytest.mark.bpf_object("firewall.bpf.o")

BLOCKED = bytes(12) + bytes.fromhex("0800 4500001400000000400000000a000001c0000207") + bytes(20)


def passes(program, packet):
    result = program.test_run(packet)
    return result.passes


def test_helper(bpf_program):
    bpf_program.test_run(bytes(60))
    assert not passes(bpf_program, BLOCKED)

def check(result):
    assert result.verdict != "XDP_PASS"

def test_frame_of_a_helper(bpf_program):
    checked = bpf_program.test_run(BLOCKED)
    check(bpf_program.test_run(bytes(64)))

def test_batch(bpf_program):
    assert bpf_program.run_batch([bytes(64), BLOCKED], packets_out=True).counts == {}

def test_capture(bpf_program):
    assert bpf_program.run_capture("sample.pcap").counts == {}

def test_map(bpf_instance):
    counters = bpf_instance.map("actions")
    assert counters[2] == [1, 1]

def test_instance(bpf_instance):
    assert not bpf_instance.maps

def test_passes(bpf_program):
    assert passes(bpf_program, BLOCKED)
"""


def failure(project: pytest.Pytester, test: str) -> list[str]:
    """The sections of a test that fails, as lines."""
    project.makepyfile(test_elsewhere=ELSEWHERE)
    result = project.runpytest_subprocess("test_elsewhere.py", "-k", test)
    assert result.parseoutcomes()["failed"] == 1
    lines = result.outlines
    return lines[next(at for at, line in enumerate(lines) if "beebox:" in line) :]


def test_failures_show_runs_of_helpers(project: pytest.Pytester) -> None:
    lines = failure(project, "test_helper")
    assert [line.strip("- ") for line in lines if "beebox:" in line] == [
        "beebox: last run",
        "beebox: runs before it",
    ]
    assert any("src 10.0.0.1, dst 192.0.2.7" in line for line in lines)
    assert "<firewall: XDP_PASS (2), 60 bytes>" in lines
    assert "map actions (percpu_array):" in lines


def test_failures_show_runs_in_all_frames(project: pytest.Pytester) -> None:
    lines = failure(project, "test_frame")
    titles = [line.strip("- ") for line in lines if "beebox:" in line]
    assert titles[:2] == ["beebox: run", "beebox: run checked"]


def test_failures_show_batches_and_captures(project: pytest.Pytester, examples: Path) -> None:
    lines = failure(project, "test_batch")
    assert "firewall (xdp): 2 packets: XDP_PASS 2" in lines
    assert "packet 0, XDP_PASS:" in lines
    assert "packet 0 after the run:" in lines
    (project.path / "sample.pcap").symlink_to(examples / "sample.pcap")
    lines = failure(project, "test_capture")
    assert "firewall (xdp): 298 packets: XDP_PASS 292, XDP_DROP 6" in lines
    assert "map actions (percpu_array):" in lines


def test_failures_show_maps(project: pytest.Pytester) -> None:
    lines = failure(project, "test_map")
    assert "map actions (percpu_array):" in lines
    assert "  2: [0, 0]" in lines
    assert sum("map actions" in line for line in lines) == 1
    assert "global checks_ports = True" in failure(project, "test_instance")


def test_tests_run_for_each_kernel(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess(
        "-v", "-k", "passes", "--bpf-kernel", "6.18", "--bpf-kernel", "6.18-minimal"
    )
    result.assert_outcomes(passed=2, deselected=7)
    result.stdout.fnmatch_lines(["*test_passes[[]6.18]*", "*test_passes[[]6.18-minimal]*"])


def test_kernels_are_named_by_a_test_and_by_the_ini_file(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nbpf_kernels =\n    6.18\n    6.18-minimal\n")
    project.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.bpf_kernels("6.18-minimal")
        def test_own(kernel):
            assert kernel.version.startswith("6.18")

        def test_all(kernel):
            pass
        """
    )
    project.runpytest_subprocess("test_own.py").assert_outcomes(passed=3)


def test_a_list_of_presets_is_a_test_for_each(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_own="""
        import pytest

        @pytest.mark.bpf_kernels("6.1-6.12", "debian-13", "6.18")
        def test_series(kernel):
            assert kernel.version.startswith("6.")
        """
    )
    result = project.runpytest_subprocess("test_own.py", "-v")
    result.stdout.fnmatch_lines(["*test_series[[]6.12.117]*", "*test_series[[]debian-13]*"])
    result.assert_outcomes(passed=5)


def test_expectation_files_are_tests(project: pytest.Pytester) -> None:
    (project.path / "wrong.expect").write_text(
        "# object: firewall.bpf.o\nrun firewall zero:60\nverdict XDP_DROP\n"
    )
    result = project.runpytest_subprocess("-k", "expectations")
    result.assert_outcomes(passed=1, failed=1, deselected=4)
    result.stdout.fnmatch_lines(["*expected XDP_DROP, got XDP_PASS (2)*"])


def test_an_object_that_is_named_has_to_be_there(project: pytest.Pytester) -> None:
    (project.path / "lost.expect").write_text("# object: lost.bpf.o\nrun firewall zero:60\n")
    (project.path / "named.expect").write_text("object lost.bpf.o\n\ntest it\nrun x zero:60\n")
    result = project.runpytest_subprocess("lost.expect", "named.expect")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*lost.bpf.o: No such file*"])
    result = project.runpytest_subprocess("--bpf-cov", "gcov=all.info")
    result.stderr.fnmatch_lines(["*--bpf-cov gcov=all.info: write lcov=FILE*"])


def test_named_tests_tell_the_run_that_differs(project: pytest.Pytester) -> None:
    (project.path / "named.expect").write_text(
        "object firewall.bpf.o\n\ntest zeros pass\nrun firewall zero:60\nverdict XDP_PASS\n\n"
        "test zeros are dropped\nrun firewall zero:60\nverdict XDP_DROP\n"
    )
    result = project.runpytest_subprocess("--bpf-cov", "lcov=all.info", "named.expect")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*named.expect:9: verdict XDP_DROP*",
            "*expected XDP_DROP, got XDP_PASS (2)*",
            "*eth.type (0x0000) != 0x0800: yes*",
        ]
    )
    assert "SF:" in (project.path / "all.info").read_text()


def test_xdist_runs_them_in_processes(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    result = project.runpytest_subprocess("-n", "2")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(["*beebox: explanation*"])


def test_an_object_must_be_named(pytester: pytest.Pytester, examples: Path) -> None:
    pytester.makepyfile("def test_it(bpf_program): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.bpf_object*"])
    (pytester.path / "f.bpf.o").write_bytes((examples / "packets/firewall.bpf.o").read_bytes())
    pytester.makeini("[pytest]\nbpf_object = f.bpf.o\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
