"""The counts of an inference server, for operators and for the live line."""

from relaax.server.inference.counts import InferenceCounts


def test_counts_grow_and_the_live_line_has_what_is_new_since_the_last_one():
    now = [10.0]
    counts = InferenceCounts(clock=lambda: now[0])
    for questions, environments in [(1, 8), (3, 24)]:
        counts.evaluated(questions, environments)
    now[0] += 2
    assert [str(figure) for figure in counts.figures()] == [
        "actions per second 16",
        "actions per evaluation 16",
    ]
    counts.evaluated(1, 6)
    now[0] += 1
    assert [figure.value for figure in counts.figures()] == [6, 6]
    shown = {metric.name: metric.samples[0].value for metric in counts.metrics()}
    assert shown == {
        "relaax_inference_questions": 5,
        "relaax_inference_actions": 38,
        "relaax_inference_evaluations": 3,
    }
