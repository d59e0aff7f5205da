"""The plug-in as another project meets it."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.kafka_topic(partitions=3)
def test_round_trip(kafka_topic, kafka_producer, kafka_consumer, kafka_admin):
    for n in range(10):
        kafka_producer.send(kafka_topic, str(n), str(n)).result(10)
    assert sorted(int(r.value) for r in kafka_consumer(kafka_topic).take(10)) == list(range(10))
    assert len(kafka_admin.topic(kafka_topic).partitions) == 3

def test_a_topic_is_empty_and_new(kafka_topic, kafka_consumer, kafka_admin):
    assert [t.name for t in kafka_admin.topics()] == [kafka_topic]
    assert kafka_consumer(kafka_topic).poll(0.2) is None

def test_two_consumers_of_one_group(kafka_topics, kafka_producer, kafka_consumer, kafka_bootstrap_servers):
    topic = kafka_topics(partitions=2)
    kafka_producer.send(topic, "x").result(10)
    assert kafka_consumer(topic, group="g").take(1)[0].value == b"x"
"""


def test_importing_it_loads_neither_broker_nor_client():
    code = (
        "import sys, penstock.testing, penstock.testing.plugin; "
        "heavy = ('penstock.broker', 'penstock.client', 'confluent_kafka', 'asyncio'); "
        "sys.exit(','.join(m for m in heavy if m in sys.modules) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr


def run(pytester, *arguments):
    pytester.makepyfile(TESTS)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=100)


def test_the_fixtures_serve_a_whole_test(pytester):
    run(pytester).assert_outcomes(passed=3)


def test_xdist_workers_have_brokers_of_their_own(pytester):
    run(pytester, "-n", "2").assert_outcomes(passed=3)


def test_the_broker_takes_the_projects_configuration(pytester):
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_config():
            return {"num.partitions": "7"}
        """
    )
    pytester.makepyfile(
        """
        def test_default_partitions(kafka_admin):
            kafka_admin.create_topic("seven")
            assert len(kafka_admin.topic("seven").partitions) == 7
        """
    )
    pytester.runpytest_subprocess(timeout=100).assert_outcomes(passed=1)


def test_a_running_cluster_is_used_on_request(pytester, kafka_bootstrap_servers):
    pytester.makepyfile(
        f"""
        def test_it(kafka_bootstrap_servers, kafka_topic, kafka_producer):
            assert kafka_bootstrap_servers == "{kafka_bootstrap_servers}"
            assert kafka_producer.send(kafka_topic, "x").result(10).offset == 0
        """
    )
    result = pytester.runpytest_subprocess("--kafka-bootstrap-servers", kafka_bootstrap_servers, timeout=100)
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["--kafka-bootstrap-servers"])
def test_the_option_is_documented(pytester, name):
    pytester.runpytest_subprocess("--help", timeout=100).stdout.fnmatch_lines([f"*{name}*"])
