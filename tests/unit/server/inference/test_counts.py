"""The counts of an inference server, for operators and for the live line."""

from stored_metrics import StoredMetrics

from relaax.server.inference.counts import InferenceCounts


def test_a_point_a_second_has_the_actions_since_the_last_one():
    now, metrics = [10.0], StoredMetrics()
    counts = InferenceCounts(clock=lambda: now[0], metrics=metrics)
    for environments in (8, 24):
        now[0] += 1
        counts.evaluated([0.0], environments, seconds=0.1)
    for name in ("inference/actions per second", "inference/actions per evaluation"):
        assert [y for y, _ in metrics.values[name]] == [8, 24]


def test_counts_grow_and_the_live_line_has_what_is_new_since_the_last_one():
    now = [10.0]
    counts = InferenceCounts(clock=lambda: now[0])
    for waits, environments in [([0.0], 8), ([0.5, 0.25, 0.0], 24)]:
        counts.evaluated(waits, environments, seconds=0.25)
    now[0] += 2
    assert [str(figure) for figure in counts.figures()] == [
        "actions per second 16",
        "actions per evaluation 16",
    ]
    counts.evaluated([0.0], 6, seconds=2.0)
    now[0] += 1
    assert [figure.value for figure in counts.figures()] == [6, 6]
    samples = [sample for metric in counts.metrics() for sample in metric.samples]
    shown = {sample.name: sample.value for sample in samples if not sample.labels}
    assert shown == {
        "relaax_inference_questions_total": 5,
        "relaax_inference_actions_total": 38,
        "relaax_inference_evaluations_total": 3,
        "relaax_queue_wait_seconds_sum": 0.75,
        "relaax_queue_wait_seconds_count": 5,
        "relaax_inference_seconds_sum": 2.5,
        "relaax_inference_seconds_count": 3,
        "relaax_batch_size_sum": 38,
        "relaax_batch_size_count": 3,
    }
    within = {
        (sample.name, sample.labels["le"]): sample.value for sample in samples if sample.labels
    }
    assert within["relaax_queue_wait_seconds_bucket", "0.25"] == 4
    assert within["relaax_batch_size_bucket", "8"] == 2
