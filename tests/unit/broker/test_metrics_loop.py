"""How late, how busy, and who it was: the probe of the loop and the watch over calls."""

from __future__ import annotations

import asyncio

import pytest
from metrics_fakes import FakeClock, FakeServices, described, make_sources, samples, value

from penstock.broker.metrics.collect import collect
from penstock.broker.metrics.loop_probe import PERIOD_MS, LoopProbe
from penstock.broker.metrics.watch import Watch


class SlowClock(FakeClock):
    """Every look at it costs a millisecond."""

    def monotonic_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms


def make_watch(clock: FakeClock | None = None) -> Watch:
    clock = clock or FakeClock()
    return Watch(clock, clock.now_s)


def probe_after(ticks: list[tuple[int, float]]) -> LoopProbe:
    """A probe whose timer came after so many milliseconds, of which the thread worked so many seconds."""

    async def run() -> LoopProbe:
        clock, cpu_s = FakeClock(), 0.0
        probe = LoopProbe(clock, lambda: cpu_s)
        probe.start()
        for passed_ms, worked_s in ticks:
            clock.now_ms += passed_ms
            cpu_s += worked_s
            probe.stop()
            probe.tick()
        probe.stop()
        return probe

    return asyncio.run(run())


def test_a_timer_in_time_has_no_lag():
    probe = probe_after([(PERIOD_MS, 0.0)])
    assert probe.buckets[0] == 1
    assert probe.lag_sum_s == 0


def test_the_delay_is_counted_in_its_bucket():
    sources = make_sources(FakeServices())
    sources.probe = probe_after([(PERIOD_MS + 30, 0.0), (PERIOD_MS + 30, 0.0), (PERIOD_MS + 9_000, 0.0)])
    found = samples(asyncio.run(collect(sources)))
    assert value(found, "penstock_loop_lag_seconds_bucket", le="0.025") == 0
    assert value(found, "penstock_loop_lag_seconds_bucket", le="0.05") == 2
    assert value(found, "penstock_loop_lag_seconds_bucket", le="+Inf") == 3
    assert value(found, "penstock_loop_lag_seconds_count") == 3
    assert value(found, "penstock_loop_lag_seconds_sum") == pytest.approx(9.06)


def test_a_loop_that_always_works_ends_up_without_idle_time():
    busy_s = PERIOD_MS / 1000
    assert probe_after([(PERIOD_MS, busy_s)]).idle_share == pytest.approx(1, abs=0.05)
    assert probe_after([(PERIOD_MS, busy_s)] * 400).idle_share == pytest.approx(0, abs=0.01)
    assert probe_after([(PERIOD_MS, busy_s / 2)] * 400).idle_share == pytest.approx(0.5, abs=0.01)


def test_the_timer_comes_again_and_stops():
    async def run() -> tuple[int, int]:
        services = FakeServices()
        probe = make_sources(services).probe
        probe.start()
        while not sum(probe.buckets):
            await asyncio.sleep(0.01)
        probe.stop()
        seen = sum(probe.buckets)
        await asyncio.sleep(1.2 * PERIOD_MS / 1000)
        return seen, sum(probe.buckets)

    seen, later = asyncio.run(run())
    assert seen == later == 1


def test_time_on_the_loop_is_summed_by_name():
    watch = make_watch()
    for seconds in (0.001, 0.002):
        watch.note("Produce", seconds)
    assert watch.seconds == {"Produce": pytest.approx(0.003)}
    assert watch.slow == {}


def test_a_slow_call_is_logged_by_name_but_not_each_time(caplog):
    clock = FakeClock()
    watch = make_watch(clock)
    watch.note("Fetch", 0.049)
    watch.note("Fetch", 0.05)
    watch.note("Fetch", 0.2)
    watch.note("CreateTopics", 0.3)
    clock.now_ms += 10_000
    watch.note("Fetch", 0.07)
    told = [record.getMessage().removeprefix("a call held the loop ") for record in caplog.records]
    assert told == [
        "call=Fetch took_ms=50 more_since_last_line=0",
        "call=CreateTopics took_ms=300 more_since_last_line=0",
        "call=Fetch took_ms=70 more_since_last_line=1",
    ]
    assert watch.slow == {"Fetch": 3, "CreateTopics": 1}


def test_slow_calls_are_counted_in_the_scrape():
    sources = make_sources(FakeServices())
    sources.watch.note("Fetch", 0.05)
    found = samples(asyncio.run(collect(sources)))
    assert value(found, "penstock_slow_calls_total", call="Fetch") == 1
    assert value(found, "penstock_request_loop_seconds_total", request="Fetch") == 0.05


def test_a_long_scrape_lets_others_run():
    services = FakeServices()
    count = 2_000
    services.add_topic("orders", *[described()] * count)
    for index in range(count):
        services.partitions.put("orders", index)
    sources = make_sources(services)
    sources.clock = SlowClock()

    async def run() -> tuple[bytes, int]:
        turns = 0
        scrape = asyncio.ensure_future(collect(sources))
        while not scrape.done():
            turns += 1
            await asyncio.sleep(0)
        return scrape.result(), turns

    text, turns = asyncio.run(run())
    assert len([key for key in samples(text) if key[0] == "kafka_log_log_size"]) == count
    assert turns > 3


def test_a_topic_deleted_during_a_scrape_does_no_harm():
    services = FakeServices()
    services.add_topic("orders", *[described()] * 300)
    for index in range(300):
        services.partitions.put("orders", index)
        services.commit("billing", "orders", index, 1)
    sources = make_sources(services)
    sources.clock = SlowClock()

    async def run() -> bytes:
        scrape = asyncio.ensure_future(collect(sources))
        await asyncio.sleep(0)
        services.partitions.places.clear()
        services.partitions.traffic.clear()
        services.shard.state.store.offsets.clear()
        return await scrape

    assert samples(asyncio.run(run()))


def test_of_a_coroutine_each_step_is_a_call_and_waiting_is_none():
    clock = FakeClock()
    watch = make_watch(clock)

    async def handler() -> str:
        clock.now_ms += 10
        await asyncio.sleep(0)
        clock.now_ms += 70
        return "answer"

    async def run() -> str:
        task = asyncio.ensure_future(watch.timed("CreateTopics", handler()))
        await asyncio.sleep(0)
        clock.now_ms += 5_000
        return await task

    assert asyncio.run(run()) == "answer"
    assert watch.seconds == {"CreateTopics": pytest.approx(0.08)}
    assert watch.slow == {"CreateTopics": 1}


def test_a_timed_coroutine_can_be_cancelled_and_can_fail():
    watch = make_watch()
    seen = []

    async def waiting() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def failing() -> None:
        raise ValueError("no")

    async def run() -> None:
        task = asyncio.ensure_future(watch.timed("Fetch", waiting()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ValueError, match="no"):
            await watch.timed("Fetch", failing())

    asyncio.run(run())
    assert seen == ["cancelled"]
