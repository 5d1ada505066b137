"""Metrics in the form that prometheus-client writes down."""

from collections.abc import Mapping, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from mutirao.worker.timing import Timing

Labels = tuple[str, ...]


def counter(name: str, meaning: str, labels: Sequence[str], values: Mapping[Labels, float]) -> Metric:
    found = CounterMetricFamily(name, meaning, labels=labels)
    for given, value in values.items():
        found.add_metric(given, value)
    return found


def gauge(name: str, meaning: str, labels: Sequence[str], values: Mapping[Labels, float]) -> Metric:
    found = GaugeMetricFamily(name, meaning, labels=labels)
    for given, value in values.items():
        found.add_metric(given, value)
    return found


def histogram(name: str, meaning: str, labels: Sequence[str], values: Mapping[Labels, Timing]) -> Metric:
    found = HistogramMetricFamily(name, meaning, labels=labels)
    for given, timing in values.items():
        found.add_metric(given, timing.buckets, timing.seconds)
    return found
