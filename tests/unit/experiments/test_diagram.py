"""An experiment as a drawing."""

from experiment_parts import INLINE, actor, buffer, evaluated, experiment, policy_worker, trainer

from relaax.experiments import SampleStream
from relaax.experiments.checks import mistakes
from relaax.experiments.diagram import mermaid


def test_a_drawing_has_each_worker_and_what_goes_between_them():
    described = experiment(
        [actor(["default"], ["steps"])] * 3, [policy_worker()], [trainer()], buffers=[buffer()] * 2
    )
    assert mermaid(described).splitlines() == [
        "flowchart LR",
        '    parameters_default[("policy default")]',
        '    trainers_default["trainer of default: ppo"]',
        '    trainers_default -->|"parameters"| parameters_default',
        '    buffers_default["2 buffers of default"]',
        '    buffers_default -->|"samples: default"| trainers_default',
        '    servers_default["policy worker of default"]',
        '    parameters_default -->|"parameters"| servers_default',
        '    actors0["3 actors: CartPole-v1"]',
        '    actors0 <-->|"observations of .*: default"| servers_default',
        '    actors0 -->|"steps of .*: steps"| buffers_default',
    ]


def test_a_drawing_has_the_way_to_each_buffer():
    described = experiment(
        [actor([INLINE], ["steps"]), actor([INLINE], ["more"])],
        [],
        [trainer()],
        buffers=[buffer(), buffer("more")],
    )
    assert mistakes(described) == []
    drawn = mermaid(described)
    assert 'actors0 -->|"steps of .*: steps"| buffers_default' in drawn
    assert 'actors1 -->|"steps of .*: more"| buffers_default' in drawn


def test_a_drawing_has_the_evaluations_and_the_tags_that_they_move():
    lines = mermaid(evaluated()).splitlines()
    manager_at = "evaluations_default_2f_my_5f_evaluation"
    for line in (
        f'{manager_at}["evaluation manager of default"]',
        f'{manager_at} -->|"tag my_evaluation"| parameters_default',
        f'actors1 -->|"episodes of .*: eval_default"| {manager_at}',
    ):
        assert f"    {line}" in lines


def test_a_drawing_takes_any_characters():
    stream = SampleStream(type_="NAME_BROADCAST", stream_name='a "b"')
    described = experiment([actor([INLINE], [stream])], [], [trainer(sample_stream='a "b"')])
    drawn = mermaid(described)
    assert '    parameters_default -->|"parameters for .*, at resets"| actors0\n' in drawn
    assert '|"steps of .*: a #34;b#34; (NAME_BROADCAST)"| trainers_default\n' in drawn
