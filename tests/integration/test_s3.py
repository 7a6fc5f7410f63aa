"""Checkpoints and metrics in S3: an emulator (moto) answers over HTTP."""

import logging
import re
import threading
import time
import urllib.request

import numpy as np
import pytest
from http_proxy import name_a_dead_proxy
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.server import ThreadedMotoServer
from replay_cases import SCHEMA, steps
from werkzeug.serving import make_server

from relaax.algorithm_base.checkpoint import Checkpoint
from relaax.checkpoints import CheckpointSaver, S3Store
from relaax.checkpoints.aws import s3_client
from relaax.checkpoints.s3_store import PART_BYTES
from relaax.configuration import AwsAccess
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint
from relaax.replay.process.replay_contents import Contents
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions
from relaax.server.certificates.secrets_folder import SecretsFolder
from relaax.telemetry.training import EventWriter, S3Mirror

pytestmark = pytest.mark.integration

BUCKET = "my_bucket"
KEY = "training/checkpoints"
DEADLINE_S = 60


def wait_for(condition):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"not within {DEADLINE_S} s"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def server_url():
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(server_url, monkeypatch, tmp_path):
    """A client of the emulator, made in the same way as the parameter server's."""
    emulator_api(server_url, "reset")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = s3_client(AwsAccess())
    made.create_bucket(Bucket=BUCKET)
    yield made
    made.close()


@pytest.fixture
def store(client):
    return S3Store(client, BUCKET, KEY)


def checkpoint(global_t):
    tensors = {"w": np.full((2, 3), global_t, np.float32), "ms": np.arange(4.0)}
    return Checkpoint(tensors, global_t, global_t * 2, {"layers": [16, 32], "lstm": False})


def keys(client, prefix=""):
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return [entry["Key"] for entry in found]


def data_name(store, global_t):
    (name,) = [n for n in store.names() if n.startswith(f"cp-{global_t}.") and "json" not in n]
    return name


def restored_step(store):
    found = CheckpointSaver(store).restore_latest()
    return found.global_t if found else None


def own_warnings(caplog):
    """Return RELAAX's messages above INFO, without the emulator's."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("relaax") and record.levelno > logging.INFO
    ]


def emulator_api(url, action, data=b""):
    request = urllib.request.Request(f"{url}/moto-api/{action}", data)  # noqa: S310
    request.add_header("Content-Type", "text/plain")  # moto empties the body of a form
    urllib.request.urlopen(request).close()  # noqa: S310


class TestS3Store:
    def test_a_blob_is_replaced_renamed_and_deleted(self, store):
        store.put("a", b"1")
        store.put("a", b"2")
        store.rename("a", "b")
        assert store.names() == ["b"]
        assert store.get("b") == b"2"
        store.delete("b")
        store.delete("b")
        assert store.names() == []
        with pytest.raises(DamagedCheckpoint, match="b is missing"):
            store.get("b")

    def test_blobs_are_objects_below_the_key(self, client, store):
        store.put("a", b"1")
        assert keys(client) == [f"{KEY}/a"]
        assert store.location() == f"s3://{BUCKET}/{KEY}/"

    def test_objects_beside_and_deeper_are_not_listed(self, client, store):
        for key in (f"{KEY}2/cp-1.json", f"{KEY}/deeper/cp-1.json", "cp-1.json"):
            client.put_object(Bucket=BUCKET, Key=key, Body=b"")
        assert store.names() == []

    def test_without_a_key_blobs_are_at_the_top(self, client):
        store = S3Store(client, BUCKET, "")
        store.put("a", b"1")
        assert keys(client) == ["a"]
        assert store.names() == ["a"]

    def test_a_large_blob_is_sent_in_parts_and_a_small_one_is_not(self, client, store):
        calls = []
        for call in ("PutObject", "UploadPart", "CompleteMultipartUpload"):
            client.meta.events.register(
                f"provide-client-params.s3.{call}", lambda call=call, **_: calls.append(call)
            )
        large = np.random.default_rng(0).bytes(2 * PART_BYTES + 1)
        store.put("large", large)
        assert sorted(calls) == ["CompleteMultipartUpload", *["UploadPart"] * 3]
        assert store.get("large") == large
        calls.clear()
        store.put("small", b"1")
        assert calls == ["PutObject"]

    def test_a_store_that_is_not_amazon_s_is_reached_by_its_url(
        self, client, server_url, monkeypatch
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")  # the option beats it
        store = S3Store(s3_client(AwsAccess(endpoint_url=server_url)), BUCKET, KEY)
        store.put("a", b"1")
        assert keys(client) == [f"{KEY}/a"]

    def test_a_store_on_this_machine_is_reached_without_a_proxy(self, client, monkeypatch):
        name_a_dead_proxy(monkeypatch)
        store = S3Store(s3_client(AwsAccess()), BUCKET, KEY)
        store.put("a", b"1")
        assert store.get("a") == b"1"

    def test_all_pages_of_a_long_list_are_read(self, store, monkeypatch):
        monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "3")  # for a page, as 1,000 of S3 itself
        names = {f"{i:04d}" for i in range(10)}
        for name in names:
            store.put(name, b"")
        assert set(store.names()) == names


class OlderStore:
    """A store over HTTPS that knows nothing of the checksums that S3 has had since 2022."""

    def __init__(self, folder):
        self.refused = []
        self._emulator = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=MotoRequestHandler,
            ssl_context=(str(folder / "server.crt"), str(folder / "server.key")),
        )  # fmt: skip
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def _answer(self, environ, start_response):
        newer = [name for name in environ if re.match("HTTP_X_AMZ_(CHECKSUM|SDK_CHECKSUM)", name)]
        if environ.get("HTTP_X_AMZ_CONTENT_SHA256", "").startswith("STREAMING-") or newer:
            self.refused.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {newer}")
            start_response("501 Not Implemented", [])
            return [b"<Error><Code>NotImplemented</Code></Error>"]
        return self._emulator(environ, start_response)

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(name="older_store")
def _older_store(client, tmp_path, monkeypatch):
    SecretsFolder(tmp_path / "secrets").sign([], 365, 3650)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "secrets" / "ca.crt"))
    store = OlderStore(tmp_path / "secrets")
    yield store
    store.close()


def test_a_store_that_refuses_the_newer_checksums_holds_checkpoints_and_metrics(
    older_store, tmp_path
):
    client = s3_client(AwsAccess(endpoint_url=older_store.url), attempts=1)
    client.create_bucket(Bucket=BUCKET)
    store = S3Store(client, BUCKET, KEY, is_owner=True)
    large = np.random.default_rng(0).bytes(2 * PART_BYTES + 1)
    for name, data in (("small", b"1"), ("large", large)):
        store.put(name, data)
        assert store.get(name) == data
    store.rename("small", "other")
    store.delete("large")
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "events.out.tfevents.1").write_bytes(b"1")
    S3Mirror(tmp_path / "metrics", client, BUCKET, "metrics").close()
    assert keys(client) == ["metrics/events.out.tfevents.1", f"{KEY}/other", f"{KEY}/owner"]
    assert older_store.refused == []
    client.close()


class TestTwoWriters:
    """Two processes that save to one place."""

    def test_the_one_that_begins_last_goes_on_and_the_other_changes_nothing(self, client):
        first, second = (S3Store(client, BUCKET, KEY, is_owner=True) for _ in range(2))
        first.put("a", b"first")
        second.put("a", b"second")
        for change in (
            lambda: first.put("a", b"again"),
            lambda: first.delete("a"),
            lambda: first.rename("a", "b"),
        ):
            with pytest.raises(CheckpointError, match=r"saves to .*, too, and began later: "):
                change()
        assert second.get("a") == b"second"
        second.put("a", b"more")
        assert first.get("a") == b"more"

    def test_a_place_that_was_cleared_is_taken_again(self, client):
        store = S3Store(client, BUCKET, KEY, is_owner=True)
        store.put("a", b"first")
        for name in store.names():
            client.delete_object(Bucket=BUCKET, Key=f"{KEY}/{name}")
        store.put("a", b"second")
        assert store.get("a") == b"second"


class TestCheckpoints:
    def test_a_checkpoint_comes_back_as_it_was_saved(self, store):
        CheckpointSaver(store).save(checkpoint(7))
        found = CheckpointSaver(store).restore_latest()
        assert found is not None
        assert (found.global_t, found.version) == (7, 14)
        assert found.fingerprint == {"layers": [16, 32], "lstm": False}
        np.testing.assert_array_equal(found.tensors["w"], np.full((2, 3), 7, np.float32))
        np.testing.assert_array_equal(found.tensors["ms"], np.arange(4.0))

    def test_an_empty_place_holds_no_checkpoint(self, store):
        assert restored_step(store) is None

    def test_the_newest_are_kept(self, client, store):
        client.put_object(Bucket=BUCKET, Key=f"{KEY}/notes.txt", Body=b"mine")
        saver = CheckpointSaver(store, keep=2)
        for global_t in (9, 10, 100):
            saver.save(checkpoint(global_t))
        assert sorted(n for n in store.names() if n.endswith(".json")) == [
            "cp-10.json",
            "cp-100.json",
        ]
        assert len(store.names()) == 5
        assert restored_step(store) == 100

    def test_saving_a_step_again_replaces_it(self, store):
        saver = CheckpointSaver(store)
        saver.save(Checkpoint({"w": np.zeros(3)}, 5, 1, {}))
        saver.save(checkpoint(5))
        assert len(store.names()) == 2
        assert restored_step(store) == 5

    @pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "manifest"])
    def test_a_damaged_one_is_skipped_and_set_aside(self, store, caplog, damage):
        for global_t in (100, 200):
            CheckpointSaver(store).save(checkpoint(global_t))
        data = data_name(store, 200)
        content = store.get(data)
        match damage:
            case "cut":
                store.put(data, content[:-1])
            case "flipped":
                store.put(data, content[:-1] + bytes([content[-1] ^ 1]))
            case "missing":
                store.delete(data)
            case "manifest":
                store.put("cp-200.json", b"garbage")

        saver = CheckpointSaver(store, keep=1)
        found = saver.restore_latest()

        assert found is not None
        assert found.global_t == 100
        (warning,) = own_warnings(caplog)
        assert "cp-200.json" in warning

        saver.save(checkpoint(150))
        caplog.clear()
        assert restored_step(store) == 150
        assert own_warnings(caplog) == []
        aside = [name for name in store.names() if name.startswith("damaged-")]
        assert len(aside) == (1 if damage == "missing" else 2)
        assert len(store.names()) == len(aside) + 2


class TestErrors:
    def test_a_missing_bucket_is_named(self, client):
        with pytest.raises(ConfigurationError, match="no S3 bucket 'other-bucket'"):
            S3Store(client, "other-bucket", KEY)

    def test_a_malformed_bucket_name_is_a_configuration_error(self, client):
        with pytest.raises(ConfigurationError, match="Invalid bucket name"):
            S3Store(client, "no spaces", KEY)

    def test_the_message_for_absent_credentials_says_how_to_give_them(self, client, monkeypatch):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(ConfigurationError, match="--aws-keys FILE"):
            S3Store(s3_client(AwsAccess()), BUCKET, KEY)

    def test_denied_access_is_named_with_the_bucket(self, client, server_url):
        emulator_api(server_url, "reset-auth", b"0")  # from now on it checks credentials
        try:
            with pytest.raises(ConfigurationError, match=f"denies .* {BUCKET!r}"):
                S3Store(client, BUCKET, KEY)
        finally:
            emulator_api(server_url, "reset-auth", b"inf")

    def test_a_bucket_that_vanishes_during_a_training_is_a_checkpoint_error(self, client, store):
        client.delete_bucket(Bucket=BUCKET)
        for use in (store.names, lambda: store.put("a", b""), lambda: store.get("a")):
            with pytest.raises(CheckpointError, match="no S3 bucket") as error:
                use()
            assert not isinstance(error.value, DamagedCheckpoint)

    def test_s3_out_of_reach_is_a_checkpoint_error(self, client, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")  # a closed port
        with pytest.raises(CheckpointError, match=r"127\.0\.0\.1:9"):
            S3Store(s3_client(AwsAccess()), BUCKET, KEY)


class TestS3Mirror:
    KEY = "training/metrics"

    def uploaded(self, client):
        return {
            key.rpartition("/")[2]: client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            for key in keys(client, self.KEY)
        }

    def on_disk(self, directory):
        return {path.name: path.read_bytes() for path in directory.glob("*tfevents*")}

    def test_written_metrics_are_uploaded_at_close(self, client, tmp_path):
        writer = EventWriter(tmp_path, lambda: 1)
        mirror = S3Mirror(tmp_path, client, BUCKET, self.KEY)
        (tmp_path / "notes.txt").write_text("not a metric")
        writer.scalar("loss", 0.5)
        writer.close()
        mirror.close()
        assert self.uploaded(client) == self.on_disk(tmp_path)
        assert len(self.uploaded(client)) == 1
        assert mirror.location() == f"s3://{BUCKET}/{self.KEY}/"

    def test_a_growing_file_is_uploaded_again_and_others_are_not(self, client, tmp_path):
        puts = []

        def note(params, **_):
            puts.append(params["Key"])

        client.meta.events.register("provide-client-params.s3.PutObject", note)
        (tmp_path / "events.out.tfevents.1.old").write_bytes(b"of an earlier run")
        writer = EventWriter(tmp_path, lambda: 1, flush_interval_s=0.01)
        mirror = S3Mirror(tmp_path, client, BUCKET, self.KEY, interval_s=0.01)
        wait_for(lambda: len(self.uploaded(client)) == 2)
        for y in range(3):
            before = self.uploaded(client)
            writer.scalar("loss", y)
            wait_for(lambda before=before: self.uploaded(client) != before)
        writer.close()
        mirror.close()
        assert self.uploaded(client) == self.on_disk(tmp_path)
        assert puts.count(f"{self.KEY}/events.out.tfevents.1.old") == 1

    def test_a_failed_upload_is_a_warning_and_is_tried_again(self, client, tmp_path, caplog):
        client.delete_bucket(Bucket=BUCKET)
        (tmp_path / "events.out.tfevents.1.a").write_bytes(b"metrics")
        mirror = S3Mirror(tmp_path, client, BUCKET, self.KEY, interval_s=0.01)
        wait_for(lambda: "cannot upload" in caplog.text)
        client.create_bucket(Bucket=BUCKET)
        wait_for(lambda: self.uploaded(client) == {"events.out.tfevents.1.a": b"metrics"})
        mirror.close()
        assert "trying again later" in own_warnings(caplog)[0]

    def test_close_gives_up_on_a_network_that_hangs(self, client, tmp_path, caplog):
        entered, release = threading.Event(), threading.Event()

        def hang(**_):
            entered.set()
            release.wait(DEADLINE_S)

        client.meta.events.register("before-call.s3.PutObject", hang, unique_id="hang")
        (tmp_path / "events.out.tfevents.1.a").write_bytes(b"metrics")
        mirror = S3Mirror(tmp_path, client, BUCKET, self.KEY, interval_s=0.01)
        assert entered.wait(DEADLINE_S)
        mirror.close(deadline_s=0.05)
        assert "not uploaded" in caplog.text
        release.set()
        mirror.close(deadline_s=DEADLINE_S)
        assert self.uploaded(client) == {"events.out.tfevents.1.a": b"metrics"}


def test_what_a_replay_server_holds_is_saved_and_restored(store):
    spec = ReplaySpec(SCHEMA, 256, {"all": TableSpec(Transitions())})
    replays = [spec.make(np.random.default_rng(0), 60.0) for _ in range(2)]
    one, two = (Contents(replay, spec, CheckpointSaver(store, keep=1)) for replay in replays)
    replays[0].open_writer("w", SCHEMA)
    replays[0].append("w", 0, 0, *steps(0, 10))
    one.save()
    assert two.restore() == 10
    assert replays[1].table_sizes() == {"all": 10}
