"""The files of `docs/schedule`: their commands run, and the programs that read them accept them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from scanner.cli import run
from scanner.commands.db import prune
from scanner.commands.scan import scan
from tests.gguf_builder import write_gguf
from tests.test_scan_command import SUMMARY_KEYS

DOCS = Path(__file__).resolve().parent.parent / "docs"
FILES = DOCS / "schedule"
PAGE = DOCS / "scheduled.md"

PROGRAM = "/opt/capscan/bin/capscan"
MODELS, STATE = "/srv/models", "/var/lib/capscan"


def service_command() -> list[str]:
    text = (FILES / "capscan.service").read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *arguments = shlex.split(line)
    assert program == PROGRAM
    return arguments


def crontab_command() -> list[str]:
    (line,) = [line for line in (FILES / "crontab").read_text().splitlines() if line[:1].isdigit()]
    command = line.split(None, 5)[5]
    folder, _, rest = command.partition(" && ")
    assert folder == f"cd {STATE}"
    program, *arguments = shlex.split(rest.removesuffix(" >/dev/null"))
    assert program == PROGRAM
    assert "%" not in command, "cron takes it for the end of the line"
    return arguments


def page_command() -> list[str]:
    (block,) = re.findall(r"```\n(capscan scan .*?)```", PAGE.read_text(), re.DOTALL)
    return shlex.split(block.replace("\\\n", " "))[1:]


def cronjob() -> dict[str, Any]:
    # It comes with gguf, without types.
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    document = yaml.safe_load((FILES / "cronjob.yaml").read_text())
    assert isinstance(document, dict)
    return document


def container() -> dict[str, Any]:
    (found,) = cronjob()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def cronjob_command() -> list[str]:
    assert container()["command"] == ["capscan"]
    return list(container()["args"])


COMMANDS = {
    "service": service_command,
    "crontab": crontab_command,
    "cronjob": cronjob_command,
    "page": page_command,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_its_command_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").mkdir()
    write_gguf(tmp_path / "models" / "a.gguf", "{% for m in messages %}{{ m.content }}{% endfor %}")
    (tmp_path / "state").mkdir()
    monkeypatch.chdir(tmp_path / "state")
    monkeypatch.setenv("CAPSCAN_DB", str(tmp_path / "state" / "capscan.db"))
    arguments = [
        part.replace(MODELS, str(tmp_path / "models")).replace(STATE, str(tmp_path / "state"))
        for part in COMMANDS[name]()
    ]
    assert run(arguments) == 0, capsys.readouterr()
    state = sorted(path.name for path in (tmp_path / "state").iterdir() if not path.name.startswith("capscan.db-"))
    assert state == ["capscan.db", "capscan.db.lock", "last-scan.json", "report"]
    told = json.loads((tmp_path / "state" / "last-scan.json").read_text())
    assert (told["status"], told["files"], told["pruned"]["scans"]) == ("finished", 1, 0)
    assert (tmp_path / "state" / "report" / "index.html").is_file()
    capsys.readouterr()


def test_every_option_that_the_page_names_exists() -> None:
    known = {option for command in (scan, prune) for one in command.params for option in one.opts}
    # Those of systemd-analyze, systemctl and pip.
    known |= {"--offline", "--now", "--no-cache-dir"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text()))
    assert named <= known
    helped = scan.get_help(click.Context(scan))
    for option in ("--wait", "--report", "--prune", "--max-age", "--summary-json", "--quiet"):
        assert option in named
        assert option in helped


def test_the_page_describes_every_key_of_the_summary() -> None:
    table = PAGE.read_text().partition("| Key | Value |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == SUMMARY_KEYS


# -- systemd -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def units(tmp_path: Path) -> Iterator[Path]:
    """The units, with a program that is there."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    program = shutil.which("true")
    assert program is not None
    for name in ("capscan.service", "capscan.timer"):
        text = (FILES / name).read_text()
        (tmp_path / name).write_text(text.replace(PROGRAM, program))
    yield tmp_path


def test_systemd_accepts_the_units(units: Path) -> None:
    files = [str(units / name) for name in ("capscan.service", "capscan.timer")]
    command = ["systemd-analyze", "verify", "--man=no", *files]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


def test_the_service_is_confined(units: Path) -> None:
    options = ["--offline=true", "--no-pager", "--threshold=10"]
    command = ["systemd-analyze", "security", *options, str(units / "capscan.service")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "offline" in ended.stderr:
        pytest.skip("this systemd-analyze cannot judge a file")
    assert ended.returncode == 0, ended.stdout[-500:]


def test_the_timer_makes_up_for_a_night() -> None:
    text = (FILES / "capscan.timer").read_text()
    assert "Persistent=true" in text
    assert "OnCalendar=" in text


# -- cron --------------------------------------------------------------------------------------------------------------


def test_cron_accepts_the_crontab() -> None:
    if shutil.which("crontab") is None:
        pytest.skip("crontab is not installed")
    # cronie's name for a dry run, then that of Debian's cron.
    for option in ("-T", "-n"):
        ended = subprocess.run(["crontab", option, FILES / "crontab"], capture_output=True, text=True, check=False)
        if "invalid option" not in ended.stderr:
            break
    assert ended.returncode == 0, ended.stderr


# -- Kubernetes --------------------------------------------------------------------------------------------------------

Fields = Mapping[str, Any]
TEXT, NUMBER, FLAG, TEXTS, NUMBERS = "text", "number", "flag", "texts", "numbers"

KEY_TO_PATH: Fields = {"name": TEXT, "mountPath": TEXT, "readOnly": FLAG}
VOLUME: Fields = {
    "name": TEXT,
    "persistentVolumeClaim": {"claimName": TEXT, "readOnly": FLAG},
    "emptyDir": {"sizeLimit": TEXT},
}
QUANTITIES: Fields = {"cpu": TEXT, "memory": TEXT}
CONTAINER: Fields = {
    "name": TEXT,
    "image": TEXT,
    "command": TEXTS,
    "args": TEXTS,
    "workingDir": TEXT,
    "resources": {"requests": QUANTITIES, "limits": QUANTITIES},
    "securityContext": {
        "allowPrivilegeEscalation": FLAG,
        "readOnlyRootFilesystem": FLAG,
        "capabilities": {"drop": TEXTS},
    },
    "volumeMounts": [KEY_TO_PATH],
}
POD: Fields = {
    "restartPolicy": TEXT,
    "terminationGracePeriodSeconds": NUMBER,
    "automountServiceAccountToken": FLAG,
    "enableServiceLinks": FLAG,
    "securityContext": {
        "runAsNonRoot": FLAG,
        "runAsUser": NUMBER,
        "runAsGroup": NUMBER,
        "fsGroup": NUMBER,
        "fsGroupChangePolicy": TEXT,
        "seccompProfile": {"type": TEXT},
    },
    "containers": [CONTAINER],
    "volumes": [VOLUME],
}
JOB: Fields = {
    "backoffLimit": NUMBER,
    "activeDeadlineSeconds": NUMBER,
    "podFailurePolicy": {
        "rules": [{"action": TEXT, "onExitCodes": {"containerName": TEXT, "operator": TEXT, "values": NUMBERS}}]
    },
    "template": {"spec": POD},
}
CRON_JOB: Fields = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": {"name": TEXT},
    "spec": {
        "schedule": TEXT,
        "timeZone": TEXT,
        "concurrencyPolicy": TEXT,
        "startingDeadlineSeconds": NUMBER,
        "successfulJobsHistoryLimit": NUMBER,
        "failedJobsHistoryLimit": NUMBER,
        "jobTemplate": {"spec": JOB},
    },
}
"""The fields that we use, out of the reference of Kubernetes 1.31 (batch/v1 and core/v1), and their types."""


def check(value: object, expected: object, where: str) -> None:
    """Fails for a field that is not one, or has another type."""
    if isinstance(expected, Mapping):
        assert isinstance(value, dict), where
        for key, held in value.items():
            assert key in expected, f"{where}.{key}"
            check(held, expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(value, list), where
        for place, held in enumerate(value):
            check(held, expected[0], f"{where}[{place}]")
    elif expected in (TEXTS, NUMBERS):
        assert isinstance(value, list), where
        kind = str if expected == TEXTS else int
        assert all(type(one) is kind for one in value), where
    else:
        assert type(value) is {TEXT: str, NUMBER: int, FLAG: bool}[str(expected)], where


def test_the_cron_job_has_the_fields_of_one() -> None:
    document = cronjob()
    check(document, CRON_JOB, "cronjob")
    assert (document["apiVersion"], document["kind"]) == ("batch/v1", "CronJob")


def test_the_cron_job_does_what_the_page_says() -> None:
    spec = cronjob()["spec"]
    assert spec["concurrencyPolicy"] in ("Allow", "Forbid", "Replace")
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    # The policy on exit codes asks for Never.
    assert pod["restartPolicy"] == "Never"
    (rule,) = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == container()["name"]
    security = container()["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    mounts = {mount["name"]: mount for mount in container()["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert mounts["models"] == {"name": "models", "mountPath": MODELS, "readOnly": True}
    assert mounts["state"]["mountPath"] == STATE == container()["workingDir"]


def test_the_memory_of_the_workers_fits() -> None:
    options = dict(part.split("=", 1) for part in cronjob_command() if "=" in part)
    limit = int(container()["resources"]["limits"]["memory"].removesuffix("Gi")) * 1024
    assert int(options["--workers"]) * int(options["--memory"]) < limit
