from __future__ import annotations

import jsonschema
import pytest
import yaml

from gateway.policy.choose import Asked, ChooseRule, ChooseRules, first_fitting
from gateway.policy.resolve import resolve
from gateway.policy.values import BadValue
from gateway.types import TaskName, TenantId
from tests.policy.examples import node, policy_set, problems_of, set_problems

TEXT = """\
tenant: acme
tasks: {chat: {}, ocr: {}, classify: {}}
choose:
  - {task: ocr, model: "*OCR*"}
  - {task: classify, path: /v1/messages, has_tools: false, max_images: 1}
  - task: ocr
    headers: {x-team: "scan*", x-tier: batch}
    min_images: 2
    user: "batch-*"
"""


def asked(
    model: str | None = "m",
    path: str = "/v1/chat/completions",
    user: str | None = None,
    images: int = 0,
    *,
    tools: bool = False,
    **headers: str,
) -> Asked:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Asked(path, sent.get, model, user, images, tools)


def chosen(ask: Asked, header_task: str | None = None) -> tuple[str, str]:
    policies, acme = policy_set(acme=TEXT), TenantId("acme")
    found = resolve(policies, tenant=acme, header_task=header_task, model=ask.model, body_task=None, asked=ask)
    return found.task, found.task_reason


@pytest.mark.parametrize(
    ("ask", "task", "reason"),
    [
        (asked("big-OCR-2"), "ocr", "policies/acme.yaml:4 choose.0"),
        (asked(path="/v1/messages", images=1), "classify", "policies/acme.yaml:5 choose.1"),
        (asked(path="/v1/messages", images=2), "chat", "default_task: built-in default"),
        (asked(path="/v1/messages", tools=True), "chat", "default_task: built-in default"),
        (asked(None), "chat", "default_task: built-in default"),
        (asked(user="batch-7", images=2, x_team="scanners", x_tier="batch"), "ocr", "policies/acme.yaml:6 choose.2"),
        (asked(user="batch-7", images=1, x_team="scanners", x_tier="batch"), "chat", "default_task: built-in default"),
        (asked(user="batch-7", images=2, x_team="scanners"), "chat", "default_task: built-in default"),
        (asked(images=2, x_team="scanners", x_tier="batch"), "chat", "default_task: built-in default"),
    ],
)
def test_the_first_rule_that_fits_wins_and_is_named(ask: Asked, task: str, reason: str) -> None:
    assert chosen(ask) == (task, reason)


def test_what_the_client_asks_for_comes_first() -> None:
    assert chosen(asked("big-OCR-2"), "classify") == ("classify", "header x-vlmgw-task")
    assert chosen(asked("big-OCR-2@chat")) == ("chat", "model alias big-OCR-2@chat")


def test_one_model_may_get_two_tasks() -> None:
    policies = policy_set(acme=TEXT)
    tasks = [
        resolve(policies, tenant=TenantId("acme"), header_task=None, model="m", body_task=None, asked=each).task
        for each in (asked(path="/v1/messages"), asked(), asked(path="/v1/messages"))
    ]
    assert tasks == ["classify", "chat", "classify"]


def test_a_rule_that_asks_nothing_always_fits() -> None:
    rules = (ChooseRule(TaskName("a"), 1, min_images=1), ChooseRule(TaskName("b"), 2))
    assert [first_fitting(rules, asked(images=count)) for count in (0, 1)] == [1, 0]
    assert first_fitting((), asked()) is None


def test_every_mistake_has_its_line_and_path() -> None:
    text = """\
choose:
  - {tsk: ocr}
  - task: ocr
    min_images: many
    headers: {X-Team: a, x-b: 1}
    has_tools: 1
    path: ""
  - ocr
  - {task: ocr, min_images: 3, max_images: 2}
"""
    assert problems_of(text) == [
        "policies/acme.yaml:2 choose.0.tsk: unknown key; did you mean task?",
        "policies/acme.yaml:2 choose.0.task: a rule names the task it chooses",
        "policies/acme.yaml:4 choose.1.min_images: expected a whole number, found 'many'",
        "policies/acme.yaml:5 choose.1.headers.X-Team: a header's name is written in lower case",
        (
            "policies/acme.yaml:5 choose.1.headers.x-b: expected a name, in which * stands for any characters, found "
            "the number 1"
        ),
        "policies/acme.yaml:6 choose.1.has_tools: expected true or false, found the number 1",
        "policies/acme.yaml:7 choose.1.path: expected a name, in which * stands for any characters, found ''",
        "policies/acme.yaml:8 choose.2: expected a rule such as {task: ocr}, found 'ocr'",
        "policies/acme.yaml:9 choose.3: min_images 3 is above max_images 2: no request fits this rule",
    ]
    with pytest.raises(BadValue, match="expected a list of rules"):
        ChooseRules().parse(node("{task: ocr}"))


def test_a_task_that_may_not_be_asked_for_may_not_be_chosen() -> None:
    own = set_problems(acme="tenant: acme\ntasks: {chat: {}}\nchoose: [{task: chta}]")
    assert [str(problem) for problem in own] == [
        "policies/acme.yaml:3 choose.0.task: task chta is not among the tasks chat; did you mean chat?"
    ]
    inherited = set_problems(default="choose: [{task: ocr}]", acme="tenant: acme\ntasks: {chat: {}}")
    assert [(problem.file, problem.path) for problem in inherited] == [("policies/acme.yaml", "choose")]


def test_the_schema_takes_what_is_taken() -> None:
    jsonschema.validate(yaml.safe_load(TEXT)["choose"], ChooseRules().schema())
