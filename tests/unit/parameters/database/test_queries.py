"""MongoDB queries for versions: seed 002, "Metadata Parameter Database", against each store."""

import logging
from collections import Counter

import numpy as np
import pytest
from mongodb import mongodb_server
from parameter_databases import NAME, values

from relaax.checkpoints import DirectoryStore
from relaax.errors import ConfigurationError, NoSuchVersion
from relaax.parameters.database import (
    DatabaseWriter,
    Metadata,
    MongoMetadata,
    SqliteMetadata,
    VersionMetadata,
)

VERSIONS = 1000

#: Of each version: its win rate, all different, and its mean return.
WIN_RATES = np.random.default_rng(1).permutation(VERSIONS) / VERSIONS
RETURNS = np.random.default_rng(2).integers(0, 21, VERSIONS).astype(float)

BY_WIN_RATE = sorted(range(VERSIONS), key=lambda version: -WIN_RATES[version])


@pytest.fixture(name="mongodb_url", scope="module")
def _mongodb_url(tmp_path_factory):
    with mongodb_server(tmp_path_factory.mktemp("mongodb")) as url:
        yield url


def filled(store):
    for version in range(VERSIONS):
        md = {"win_rate": WIN_RATES[version], "episode_return": RETURNS[version]}
        times = {"time_created": float(version), "last_updated": float(version)}
        store.write(VersionMetadata(version=version, **times, count=1, md=md))
    return store


@pytest.fixture(name="stores", scope="module")
def _stores(tmp_path_factory, mongodb_url):
    mongodb = filled(MongoMetadata(mongodb_url, NAME))
    # The neighbour's metadata are in the same collection.
    neighbour = MongoMetadata(mongodb_url, NAME._replace(policy="neighbour"))
    neighbour.write(
        VersionMetadata(version=5000, time_created=1.0, last_updated=1.0, md={"x": 1.0})
    )
    sqlite = filled(SqliteMetadata(tmp_path_factory.mktemp("sqlite") / "metadata.sqlite"))
    yield {"SQLite": sqlite, "MongoDB": mongodb}
    mongodb.close()
    neighbour.close()


@pytest.fixture(name="metadata", params=["SQLite", "MongoDB"])
def _metadata(request, stores):
    random = np.random.default_rng(3)
    return Metadata(stores[request.param], clock=lambda: 1000.0, random=random)


def versions_where(condition):
    return [
        version for version in range(VERSIONS) if condition(WIN_RATES[version], RETURNS[version])
    ]


#: The seed's examples 1 to 6; 4 and 6 are mended, since their JSON is none.
EXAMPLES = {
    "1": ({"$match": {}}, versions_where(lambda *_: True)),
    "2": ({"$match": {"md.win_rate": {"$gt": 0.8}}}, versions_where(lambda win, _: win > 0.8)),
    "3": ({"$match": {"md.win_rate": {"$gte": 0.8}}}, versions_where(lambda win, _: win >= 0.8)),
    "4": (
        {"$match": {"md.win_rate": {"$gte": 0.6, "$lte": 0.8}, "md.episode_return": {"$gt": 10}}},
        versions_where(lambda win, earned: 0.6 <= win <= 0.8 and earned > 10),
    ),
    "5": ([{"$sort": {"md.win_rate": -1}}, {"$limit": 10}], BY_WIN_RATE[:10]),
    "6": (
        [
            {"$match": {"md.episode_return": {"$gt": 10}}},
            {"$sort": {"md.win_rate": -1}},
            {"$limit": 10},
        ],
        [version for version in BY_WIN_RATE if RETURNS[version] > 10][:10],
    ),
}

OTHERS = {
    "2, less": (
        {"$match": {"md.win_rate": {"$lt": 0.8}}},
        versions_where(lambda win, _: win < 0.8),
    ),
    "equal": ({"$match": {"version": 7}}, [7]),
    "not equal": ({"$match": {"md.episode_return": {"$ne": 3}, "version": {"$lt": 20}}},
        [version for version in range(20) if RETURNS[version] != 3]),
    "one of": ({"$match": {"version": {"$in": [5, 3, 5000]}}}, [3, 5]),
    "none of": ({"$match": {"version": {"$nin": [1, 3], "$lt": 5}}}, [0, 2, 4]),
    "or": ({"$match": {"$or": [{"version": 3}, {"version": {"$gte": 998}}]}}, [3, 998, 999]),
    "nor": ({"$match": {"$nor": [{"version": {"$gt": 1}}, {"version": 0}]}}, [1]),
    "and": ({"$match": {"$and": [{"version": {"$gt": 4}}, {"version": {"$lt": 6}}]}}, [5]),
    "not": ({"$match": {"version": {"$not": {"$gt": 1}}}}, [0, 1]),
    "exists with another": ({"$match": {"version": {"$exists": True, "$lt": 2}}}, [0, 1]),
    "exists not": ({"$match": {"version": {"$exists": False}}}, []),
    "sorted twice": ([{"$match": {"version": {"$lt": 30}}},
        {"$sort": {"md.episode_return": -1, "version": 1}}, {"$skip": 1}, {"$limit": 3}],
        sorted(range(30), key=lambda version: (-RETURNS[version], version))[1:4]),
}  # fmt: skip


@pytest.mark.parametrize("case", [*EXAMPLES, *OTHERS])
def test_a_query_leads_to_these_versions(metadata, case):
    query, expected = {**EXAMPLES, **OTHERS}[case]
    assert expected or case == "exists not"
    # Nothing beside these versions, and each of them, of which the first are asked for.
    assert metadata.choose(query, set(range(VERSIONS)) - set(expected)) is None
    for version in expected[:12]:
        assert metadata.choose(query, {version}) == version


def test_one_of_the_result_is_chosen_uniformly(metadata):
    query, expected = EXAMPLES["5"]
    chosen = Counter(metadata.choose(query, range(VERSIONS)) for _ in range(60))
    assert set(chosen) == set(expected)
    assert max(chosen.values()) < 18


def test_a_sample_of_the_result_can_be_drawn(metadata):
    query = [{"$match": {"version": {"$lt": 5}}}, {"$sample": {"size": 2}}]
    assert {metadata.choose(query, range(VERSIONS)) for _ in range(30)} == set(range(5))


#: Weights of versions; the last one has none.
WEIGHTS = [1.0, 0.0, 0.25, 2.0, None]


@pytest.fixture(name="weighed", params=["SQLite", "MongoDB"])
def _weighed(request, tmp_path):
    if request.param == "SQLite":
        store = SqliteMetadata(tmp_path / "metadata.sqlite")
    else:
        store = MongoMetadata(request.getfixturevalue("mongodb_url"), NAME._replace(policy="few"))
    for version, weight in enumerate(WEIGHTS):
        md = {} if weight is None else {"pfsp": weight}
        times = {"time_created": 1.0, "last_updated": 1.0}
        store.write(VersionMetadata(version=version, **times, md=md))
    yield Metadata(store, clock=lambda: 1000.0, random=np.random.default_rng(3))
    store.close()


def frequencies(metadata, query, draws=400):
    chosen = Counter(metadata.choose(query, range(len(WEIGHTS))) for _ in range(draws))
    return np.array([chosen[version] for version in range(len(WEIGHTS))]) / draws


def test_a_version_is_drawn_in_proportion_to_a_number(weighed):
    found = frequencies(weighed, [{"$match": {}}, {"$draw": "md.pfsp"}])
    expected = np.array([weight or 0.0 for weight in WEIGHTS])
    expected /= expected.sum()
    assert (found[expected == 0] == 0).all()
    # A share of 400 draws has a standard deviation of 0.025 at most.
    assert np.abs(found - expected).max() < 0.1


def test_versions_are_drawn_uniformly_where_all_weights_are_0(weighed):
    found = frequencies(weighed, {"$draw": "md.not_yet"})
    assert np.abs(found - 1 / len(WEIGHTS)).max() < 0.1
    some = [{"$match": {"version": {"$in": [1, 4]}}}, {"$draw": "md.pfsp"}]
    assert np.abs(frequencies(weighed, some)[[1, 4]] - 0.5).max() < 0.1


def test_a_weight_below_0_is_an_error(tmp_path):
    store = SqliteMetadata(tmp_path / "metadata.sqlite")
    store.write(VersionMetadata(version=7, time_created=1.0, last_updated=1.0, md={"pfsp": -0.5}))
    metadata = Metadata(store, clock=lambda: 1000.0)
    with pytest.raises(ConfigurationError, match=r"md\.pfsp of version 7 is -0\.5: \$draw needs"):
        metadata.choose({"$draw": "md.pfsp"}, [7])


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ({"match": {}}, "did you forget the dollar sign of $match?"),
        ({"$match": {"md.win_rate": {"gt": 0.8}}}, "did you forget the dollar sign of $gt?"),
        ({"$match": {"or": [{"version": 1}]}}, "did you forget the dollar sign of $or?"),
        ({"$match": {"win_rate": {"$gt": 0.8}}}, "did you forget 'md.' before 'win_rate'?"),
        ([{"$sort": {"win_rate": -1}}], "did you forget 'md.' before 'win_rate'?"),
        (
            {"$match": {"md.wins": {"$gt": 0.8}}},
            "there is no field 'md.wins'; fields are version, time_created, last_updated, count, "
            "md.episode_return, md.win_rate",
        ),
        ({"$matches": {}}, "'$matches' is not among the stages $match, $sort, $limit, $skip"),
        ({"$out": "elsewhere"}, "'$out' is not among the stages"),
        ({"$match": {"$where": "1"}}, "'$where' is not among the operators"),
        ({"$match": {"version": {"$regex": "1"}}}, "'$regex' is not among the operators $eq, $ne"),
        ({"$match": {}, "$limit": 3}, "Write several stages as a list"),
        ({"$match": {"version": {}}}, "version has no condition"),
        ({"$match": {"version": "7"}}, "$eq compares numbers, not '7'"),
        ({"$match": {"version": {"$in": 7.5, "$exists": 1}}}, "$exists is true or false, not 1"),
        ({"$match": {"$or": {}}}, "$or has a list of conditions, not {}"),
        ({"$match": 3}, "conditions must be a dict with names, is 3"),
        ({"$sort": {"version": 0}}, "version is sorted by 1 or -1, not by 0"),
        ({"$limit": 0}, "$limit must be a number of 1 or more, is 0"),
        ({"$skip": -1}, "$skip must be a number of 0 or more, is -1"),
        ({"$sample": {"size": 0.5}}, "$sample must be a number of 1 or more, is 0.5"),
        ({"$sample": 3}, "$sample must be a dict with names, is 3"),
        ([3], "a stage has one operator, is 3"),
        ([{"$draw": "md.win_rate"}, {"$limit": 3}], "$draw is the last stage"),
        ({"$draw": "md.win_rate", "$limit": 3}, "$draw is the last stage, and has no other"),
        ({"$draw": "win_rate"}, "$draw has md.NAME, not 'win_rate'"),
        ({"draw": "md.win_rate"}, "did you forget the dollar sign of $draw?"),
    ],
)
def test_a_wrong_query_says_what_was_forgotten(metadata, query, hint):
    with pytest.raises(ConfigurationError) as refused:
        metadata.choose(query, range(VERSIONS))
    assert hint in str(refused.value)
    assert str(refused.value).startswith(f"the query {query!r}: ")


@pytest.mark.parametrize("levels", [300, 3000])
def test_a_query_that_is_nested_too_deeply_is_refused(stores, levels):
    conditions = {}
    for _ in range(levels):
        conditions = {"$and": [conditions]}
    metadata = Metadata(stores["SQLite"], clock=lambda: 1000.0)
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        metadata.choose({"$match": conditions}, range(VERSIONS))


def test_example_7_an_empty_result_falls_back_to_latest(tmp_path, caplog):
    metadata = Metadata(SqliteMetadata(tmp_path / "metadata.sqlite"))
    writer = DatabaseWriter(DirectoryStore(tmp_path), metadata)
    query = {"$match": {"md.win_rate": {"$gt": 0.9}}}
    with pytest.raises(NoSuchVersion, match=r"leads to no version in .*, and there is no 'latest'"):
        writer.get(query)
    writer.push(values(1), 1, ["tagged"])
    writer.push(values(2), 2)
    with caplog.at_level(logging.WARNING):
        assert writer.get(query).number == 2
    assert "leads to no version" in caplog.text
    assert "the latest, 2, takes its place" in caplog.text
