"""How the command line, the YAML file and the defaults are combined."""

import subprocess
import sys
from pathlib import Path

import pytest

from relaax.address import Address, Addresses
from relaax.configuration import (
    ParameterServerOptions,
    RlxServerOptions,
    S3Location,
    load_export,
    load_learner,
    load_parameter_server,
    load_replay_server,
    load_rlx_server,
)
from relaax.configuration.named_files import bundled_algorithms
from relaax.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[3]
PARAMETER_SERVER = "relaax-parameter-server"
NAMED = "algorithm: {name: da3c}\n"
DATABASE = ("--database-dir", "d", "--database-name", "a/b/c")


@pytest.fixture
def yaml(tmp_path, monkeypatch):
    """A file in the working directory, so that messages show its name as it was given."""
    monkeypatch.chdir(tmp_path)
    return Path("da3c.yaml")


def options(yaml, section="", *flags):
    """Load a parameter server whose section holds the keys of a YAML flow mapping."""
    yaml.write_text(f"{PARAMETER_SERVER}: {{{section}}}\n{NAMED}")
    return load_parameter_server(["--config", str(yaml), *flags]).options


def rlx_server_options(yaml, section="", *flags):
    """Load an RLX server whose section holds the keys of a YAML flow mapping."""
    yaml.write_text(f"relaax-rlx-server: {{{section}}}\n{NAMED}")
    return load_rlx_server(["--config", str(yaml), *flags]).options


def refusal(load, *arguments):
    """The one line of the error that refuses a configuration."""
    with pytest.raises(ConfigurationError) as error:
        load(*arguments)
    message = str(error.value)
    assert "\n" not in message
    return message


def refusal_of_text(yaml, text, load=load_parameter_server):
    yaml.write_text(text)
    return refusal(load, ["--config", str(yaml)])


class TestValues:
    def test_the_defaults_are_those_of_one_machine(self, yaml):
        yaml.write_text(NAMED)
        found = load_parameter_server(["--config", str(yaml)]).options
        assert found == ParameterServerOptions()
        assert (found.bind, found.http_bind) == (Address("localhost", 7000), None)
        found = load_rlx_server(["--config", str(yaml)]).options
        assert found == RlxServerOptions()
        assert (found.bind, found.http_bind) == (Address("localhost", 7001), None)
        assert found.parameter_server == Addresses([Address("localhost", 7000)])
        assert (found.learner, found.replay_servers) == (Address("localhost", 7002), None)
        access = (found.auth_token_file, found.tls_cert, found.tls_key, found.tls_ca, found.proxy)
        assert not any(access)
        assert not found.insecure

    def test_a_flag_beats_the_file_and_the_file_beats_the_default(self, yaml):
        section = "--bind: a:1, --log-level: INFO"
        found = options(yaml, section, "--bind", "b:2")
        assert (found.bind, found.log_level) == (Address("b", 2), "INFO")
        assert found.checkpoint_interval == 900.0

    @pytest.mark.parametrize(
        ("written", "workers"), [("connection", "connection"), ("auto", "auto"), (3, 3)]
    )
    def test_workers_are_a_word_or_a_number_in_the_file_and_as_a_flag(self, yaml, written, workers):
        in_file = rlx_server_options(yaml, f"--workers: {written}")
        as_flag = rlx_server_options(yaml, "", "--workers", str(written))
        assert in_file.workers == as_flag.workers == workers

    def test_the_time_of_a_message_can_be_given(self, yaml):
        assert rlx_server_options(yaml, "--message-timeout: 2").message_timeout == 2.0
        found = rlx_server_options(yaml, "", "--message-timeout", "0.5")
        assert found.message_timeout == 0.5

    def test_a_switch_can_be_turned_off_by_a_flag(self, yaml):
        section = "--keep-serving: true"
        assert options(yaml, section).keep_serving
        assert not options(yaml, section, "--no-keep-serving").keep_serving
        assert options(yaml, "", "--keep-serving").keep_serving

    def test_flags_are_read_as_the_types_of_their_options(self, yaml):
        found = options(
            yaml,
            "",
            *("--goal-return", "-21", "--checkpoint-interval", "1e3", "--checkpoints-to-keep", "2"),
            *("--metrics-aws-s3", "bucket", "training/metrics", "--aws-keys", "keys.yaml"),
        )
        assert (found.goal_return, found.checkpoint_interval) == (-21.0, 1000.0)
        assert found.checkpoints_to_keep == 2
        assert found.metrics_aws_s3 == S3Location("bucket", "training/metrics")
        assert found.aws_keys == Path("keys.yaml")

    def test_a_run_has_the_name_of_its_file_unless_it_is_given_one(self, yaml):
        yaml.write_text(NAMED)
        assert load_parameter_server(["--config", str(yaml)]).run_name == yaml.stem
        arguments = ["--config", str(yaml), "--run-name", "second try"]
        assert load_parameter_server(arguments).run_name == "second try"

    @pytest.mark.parametrize("name", ["a/b", "..", ".", "", "/", "a\0b", "a\ud800"])
    def test_the_name_of_a_run_is_one_of_a_directory(self, yaml, name):
        with pytest.raises(ConfigurationError, match="--run-name: must be a name for a directory"):
            options(yaml, "", "--run-name", name)

    def test_the_file_may_write_a_whole_number_for_a_real_one(self, yaml):
        assert options(yaml, "--goal-return: 475").goal_return == 475.0

    def test_a_whole_number_may_be_written_with_an_exponent(self, yaml):
        found = options(yaml, "--checkpoints-to-keep: 1e2").checkpoints_to_keep
        assert (found, type(found)) == (100, int)

    def test_sections_may_share_values(self, yaml):
        yaml.write_text(
            f"{PARAMETER_SERVER}: &shared {{--log-level: INFO, --bind: a:1}}\n"
            f"relaax-rlx-server: {{<<: *shared, --bind: b:2}}\n{NAMED}"
        )
        found = load_rlx_server(["--config", str(yaml)]).options
        assert (found.log_level, found.bind) == ("INFO", Address("b", 2))

    def test_the_home_directory_is_expanded(self, yaml, monkeypatch):
        monkeypatch.setenv("HOME", "/home/someone")
        found = options(yaml, "--metrics-dir: ~/metrics, --checkpoint-dir: ~no-such-user/x")
        assert found.metrics_dir == Path("/home/someone/metrics")
        assert found.checkpoint_dir == Path("~no-such-user/x")

    def test_a_flag_replaces_the_other_kind_of_checkpoints_in_the_file(self, yaml):
        in_s3 = "--checkpoint-aws-s3: [bucket, key]"
        found = options(yaml, in_s3, "--checkpoint-dir", "here")
        assert (found.checkpoint_dir, found.checkpoint_aws_s3) == (Path("here"), None)
        found = options(yaml, "--checkpoint-dir: here", "--checkpoint-aws-s3", "bucket", "key")
        assert (found.checkpoint_dir, found.checkpoint_aws_s3) == (None, ("bucket", "key"))

    def test_replay_servers_are_named_once_for_all(self, yaml):
        servers = "--replay-servers: [a:1, 'b:2']"
        yaml.write_text(f"relaax-learner: {{{servers}}}\n{NAMED}")
        expected = (Address("a", 1), Address("b", 2))
        for load in (load_learner, load_rlx_server, load_replay_server):
            assert load(["--config", str(yaml)]).options.replay_servers == expected
        flags = ["--replay-servers", "c:3", "d:4"]
        found = load_replay_server(["--config", str(yaml), *flags]).options
        assert found.replay_servers == (Address("c", 3), Address("d", 4))
        assert found.own_name == "localhost-7003"

    def test_a_section_of_its_own_beats_that_of_the_learner(self, yaml):
        yaml.write_text(
            "relaax-learner: {--replay-servers: [a:1]}\n"
            f"relaax-rlx-server: {{--replay-servers: [b:2]}}\n{NAMED}"
        )
        found = load_rlx_server(["--config", str(yaml)]).options.replay_servers
        assert found == (Address("b", 2),)

    @pytest.mark.parametrize(
        ("written", "reason"),
        [
            ("a:1", "must be a list of HOST:PORT, is 'a:1'"),
            ("[]", "must be a list of HOST:PORT, is []"),
            ("[a:1, a:1]", "must not name an address twice"),
            ("[a]", "an address is HOST:PORT"),
        ],
    )
    def test_replay_servers_are_addresses_and_each_is_another_one(self, yaml, written, reason):
        text = f"relaax-learner: {{--replay-servers: {written}}}\n{NAMED}"
        message = refusal_of_text(yaml, text, load_learner)
        assert message.startswith(f"{yaml}: relaax-learner: --replay-servers: ")
        assert reason in message

    def test_each_server_reads_its_own_section_alone(self, yaml):
        yaml.write_text(f"{PARAMETER_SERVER}: {{--log-level: LOUD}}\n{NAMED}")
        assert load_rlx_server(["--config", str(yaml)]).options == RlxServerOptions()

    @pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/*.yaml")), ids=lambda p: p.stem)
    def test_every_configuration_of_the_repository_loads(self, path):
        others = {
            "da3c_cont_": "da3c_cont",
            "da3cc_": "da3c_cont",
            "td3_": "ddpg",
            "gorila_": "dqn",
        }
        names = others | {"starter_continuous": "da3c_cont", "starter_discrete": "da3c"}
        names |= {f"{name}_": name for name in bundled_algorithms()}
        name = next(n for stem, n in names.items() if path.stem.startswith(stem))
        for load in (load_parameter_server, load_rlx_server, load_learner):
            found = load(["--config", str(path)]).algorithm
            assert found.directory == REPOSITORY / "algorithms" / name

    def test_numpy_is_not_imported_before_its_threads_are_set(self):
        code = "import sys, relaax.server.rlx_server.main; sys.exit('numpy' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("section", "reason"),
        [
            ("--checkpoint-interval: -1", "--checkpoint-interval: must be greater than 0, is -1"),
            (
                "--checkpoint-interval: .nan",
                "--checkpoint-interval: must be a finite number, is nan",
            ),
            ("--goal-return: '475'", "--goal-return: must be a number, is '475'"),
            ("--goal-return: true", "--goal-return: must be a number, is true"),
            ("--goal-episodes: true", "--goal-episodes: must be an integer, is true"),
            ("--goal-episodes: 1.5", "--goal-episodes: must be an integer, is 1.5"),
            ("--keep-serving: 1", "--keep-serving: must be true or false, is 1"),
            ("--keep-serving: 'yes'", "--keep-serving: must be true or false, is 'yes'"),
            ("--checkpoint-interval: [1]", "--checkpoint-interval: must be a number, is [1]"),
            ("--checkpoint-interval:", "--checkpoint-interval: must be a number, is empty"),
            ("--bind:", "--bind: must be HOST:PORT, is empty"),
            ("--bind: [a, b]", "--bind: must be HOST:PORT, is ['a', 'b']"),
            ("--metrics-dir: 2024-01-31", "--metrics-dir: must be a path, is 2024-01-31"),
            (
                "--bind: localhost",
                "--bind: an address is HOST:PORT with a port up to 65535, such as localhost:7001 "
                "or [::1]:7001 with an IPv6 address in brackets; this is 'localhost'",
            ),
            (
                "--log-level: LOUD",
                "--log-level: must be 'DEBUG', 'INFO', 'WARNING', 'ERROR' or 'CRITICAL', is 'LOUD'",
            ),
            ("--bind: 7000", "--bind: must be HOST:PORT, is 7000"),
            ("--metrics-dir: 5", "--metrics-dir: must be a path, is 5"),
            (
                "--metrics-aws-s3: bucket",
                "--metrics-aws-s3: must be a bucket and a key, such as [my_bucket, training], "
                "is 'bucket'",
            ),
            ("--bimd: a:1", "--bimd: no such key; did you mean --bind?"),
            (
                "--checkpoint-dir: here, --checkpoint-aws-s3: [bucket, key]",
                "give --checkpoint-dir or --checkpoint-aws-s3, not both",
            ),
            (
                "--goal-return: x, --goal-episodes: 0",
                "--goal-return: must be a number, is 'x'; "
                "--goal-episodes: must be greater than 0, is 0",
            ),
        ],
    )
    def test_a_value_in_the_file_is_named_with_file_section_and_key(self, yaml, section, reason):
        assert refusal(options, yaml, section) == f"da3c.yaml: {PARAMETER_SERVER}: {reason}"

    @pytest.mark.parametrize(
        ("flags", "reason"),
        [
            (["--goal-return", "much"], "--goal-return: must be a number, is 'much'"),
            (["--goal-episodes", "1.5"], "--goal-episodes: must be an integer, is 1.5"),
            (
                ["--checkpoint-interval", "-1"],
                "--checkpoint-interval: must be greater than 0, is -1",
            ),
            (
                ["--checkpoint-interval", "inf"],
                "--checkpoint-interval: must be a finite number, is 'inf'",
            ),
            (
                ["--log-level", "info"],
                "--log-level: must be 'DEBUG', 'INFO', 'WARNING', 'ERROR' or 'CRITICAL', is 'info'",
            ),
            (["--metrics-dir", ""], "--metrics-dir: must be a path, is ''"),
            (
                ["--checkpoint-dir", "here", "--checkpoint-aws-s3", "bucket", "key"],
                "give --checkpoint-dir or --checkpoint-aws-s3, not both",
            ),
        ],
    )
    def test_a_value_on_the_command_line_is_named_by_its_flag_alone(self, yaml, flags, reason):
        assert refusal(options, yaml, "--log-level: INFO", *flags) == reason

    @pytest.mark.parametrize(
        ("section", "reason"),
        [
            ("--workers: 0", "is 0"),
            ("--workers: true", "is True"),
            ("--workers: 1.5", "is 1.5"),
            ("--workers: many", "is 'many'"),
            ("--workers: -1", "is -1"),
        ],
    )
    def test_workers_that_cannot_be_started_are_refused(self, yaml, section, reason):
        assert refusal(rlx_server_options, yaml, section) == (
            "da3c.yaml: relaax-rlx-server: --workers: must be 'connection', 'auto' or a number of "
            f"workers, {reason}"
        )

    @pytest.mark.parametrize(
        ("flags", "reason"),
        [
            (["--shard", "1/2"], "--shard 1/2 needs 2 addresses in --shards, not 3"),
            (["--shard", "1/3", "--replica-of", "localhost:1"], "give --shard or --replica-of"),
        ],
    )
    def test_a_flag_that_does_not_fit_the_file_is_refused(self, yaml, flags, reason):
        section = "--shards: [localhost:1, localhost:2, localhost:3]"
        assert refusal(options, yaml, section, *flags).startswith(reason)

    @pytest.mark.parametrize(
        ("flags", "reason"),
        [
            ([], "--push-frequency-steps: no effect without --database-dir"),
            (
                [*DATABASE, "--database-expire-days", "1"],
                "--database-expire-days: no effect without --database-type metadata",
            ),
            (["--database-dir", "d"], "--database-name: is missing: EXPERIMENT/TRIAL/POLICY"),
            (
                [*DATABASE, "--database-aws-s3", "b", "k"],
                "give --database-dir or --database-aws-s3, not both",
            ),
            (
                [*DATABASE, "--replica-of", "localhost:1"],
                "--database-dir: a replica or a shard has no parameter database",
            ),
            (
                ["--database-dir", "d", "--database-name", "a/b"],
                "--database-name: must be EXPERIMENT/TRIAL/POLICY, is 'a/b'",
            ),
        ],
    )
    def test_a_parameter_database_has_a_place_a_name_and_all_values(self, yaml, flags, reason):
        assert refusal(options, yaml, "--push-frequency-steps: 5", *flags).startswith(reason)

    @pytest.mark.parametrize("seconds", ["0", "-1"])
    def test_a_message_must_have_some_time(self, yaml, seconds):
        assert refusal(rlx_server_options, yaml, f"--message-timeout: {seconds}") == (
            f"da3c.yaml: relaax-rlx-server: --message-timeout: must be greater than 0, is {seconds}"
        )

    def test_the_option_that_workers_replace_is_refused_with_what_to_write_instead(self, yaml):
        instead = (
            "any more; write '--workers: auto' in place of 'batched'; leave it out, or write "
            "'--workers: connection', in place of 'inline'"
        )
        assert refusal(rlx_server_options, yaml, "--inference: batched") == (
            f"da3c.yaml: relaax-rlx-server: --inference: no such key {instead}"
        )
        for flags in (["--inference", "batched"], ["--inference=inline"]):
            found = refusal(rlx_server_options, yaml, "", *flags)
            assert found == f"--inference: no such option {instead}"

    def test_an_unknown_section_is_refused(self, yaml):
        assert (
            refusal_of_text(yaml, f"relaax-rlx-sever: {{}}\n{NAMED}")
            == "da3c.yaml: relaax-rlx-sever: no such key; did you mean relaax-rlx-server?"
        )

    def test_a_key_that_is_no_text_is_refused(self, yaml):
        assert refusal_of_text(yaml, f"{NAMED}5: x").startswith(
            "da3c.yaml: 5: no such key; known keys"
        )
        assert (
            refusal_of_text(yaml, "algorithm: {name: da3c, null: 1}")
            == "da3c.yaml: algorithm: a key must be text, is empty"
        )

    def test_a_section_is_a_mapping(self, yaml):
        assert (
            refusal_of_text(yaml, f"relaax-rlx-server: [x]\n{NAMED}", load_rlx_server)
            == "da3c.yaml: relaax-rlx-server: must be a section of keys, is ['x']"
        )

    def test_an_empty_section_holds_the_defaults(self, yaml):
        yaml.write_text(f"relaax-rlx-server:\n{NAMED}")
        assert load_rlx_server(["--config", str(yaml)]).options == RlxServerOptions()


class TestAlgorithm:
    def package(self, directory):
        directory.mkdir(parents=True)
        (directory / "__init__.py").touch()
        return directory

    def located(self, yaml, text):
        yaml.parent.mkdir(exist_ok=True)
        yaml.write_text(f"algorithm: {text}\n")
        return load_rlx_server(["--config", str(yaml)]).algorithm

    def test_the_parameters_are_the_section_without_path_and_name(self, yaml):
        found = self.located(yaml, "{name: da3c, initial_learning_rate: 7e-4, RMSProp: {decay: 1}}")
        assert found.parameters == {"initial_learning_rate": 7e-4, "RMSProp": {"decay": 1}}
        assert found.source == yaml

    def test_a_path_is_searched_beside_the_file_first(self, yaml, tmp_path):
        beside = self.package(tmp_path / "config" / "mine")
        self.package(tmp_path / "mine")
        assert self.located(Path("config/x.yaml"), "{path: mine}").directory == beside

    def test_a_path_is_searched_in_the_working_directory_second(self, yaml, tmp_path):
        (tmp_path / "config" / "mine").mkdir(parents=True)  # a folder, but not a package
        here = self.package(tmp_path / "mine")
        assert self.located(Path("config/x.yaml"), "{path: mine}").directory == here

    def test_a_path_may_be_absolute_or_in_the_home_directory(self, yaml, tmp_path, monkeypatch):
        mine = self.package(tmp_path / "home" / "mine")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert self.located(yaml, "{path: ~/mine}").directory == mine
        assert self.located(yaml, f"{{path: {mine}}}").directory == mine

    def test_the_message_for_a_missing_path_lists_the_searched_folders(self, yaml, tmp_path):
        config = Path("config/x.yaml")
        with pytest.raises(ConfigurationError) as error:
            self.located(config, "{path: mine}")
        assert str(error.value) == (
            "config/x.yaml: algorithm: path: mine is not a folder with an __init__.py; "
            f"looked in {tmp_path / 'config' / 'mine'} and {tmp_path / 'mine'}"
        )

    def test_a_path_that_only_leads_from_another_folder_is_answered_with_the_bundled_name(
        self, yaml
    ):
        with pytest.raises(ConfigurationError, match="write 'name: da3c' instead"):
            self.located(Path("config/x.yaml"), "{path: ../../algorithms/da3c}")

    def test_the_file_of_a_network_is_searched_beside_the_configuration_first(self, yaml, tmp_path):
        (tmp_path / "config").mkdir()
        beside = tmp_path / "config" / "nature.json"
        for file in (beside, tmp_path / "nature.json"):
            file.touch()
        found = self.located(Path("config/x.yaml"), "{name: da3c, network: nature.json}")
        assert found.parameters == {"network": str(beside)}

    @pytest.mark.parametrize("network", ["nature.json", "n" * 300, [{"dense": 64}]])
    def test_what_is_not_beside_it_is_left_to_the_working_directory(self, yaml, network):
        found = self.located(yaml, f"{{name: da3c, network: {network}}}")
        assert found.parameters == {"network": network}

    def test_a_bundled_algorithm_is_found_by_its_name(self, yaml):
        assert self.located(yaml, "{name: da3c}").directory == REPOSITORY / "algorithms" / "da3c"

    @pytest.mark.parametrize("name", ["muzero", "../algorithms/da3c"])
    def test_an_unknown_name_lists_the_bundled_ones(self, yaml, name):
        assert refusal_of_text(yaml, f"algorithm: {{name: {name}}}") == (
            f"da3c.yaml: algorithm: name: unknown algorithm {name!r}; "
            f"the bundled algorithms are {', '.join(bundled_algorithms())}"
        )

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("td3", "; TD3 is name: ddpg with the key twin: true"),
            ("PPO", "; did you mean ppo?"),
            ("dac3", "; did you mean da3c?"),
        ],
    )
    def test_another_name_of_a_bundled_one_has_a_hint(self, yaml, name, hint):
        assert refusal_of_text(yaml, f"algorithm: {{name: {name}}}").endswith(hint)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("{name: da3c, path: x}", "give 'path' or 'name', not both: either names an algorithm"),
            ("{name: 5}", "name: must be a name, is 5"),
            ("{name: [da3c]}", "name: must be a name, is ['da3c']"),
            ("{path: ''}", "path: must be a path, is ''"),
        ],
    )
    def test_a_path_or_a_name_is_text(self, yaml, text, reason):
        assert refusal_of_text(yaml, f"algorithm: {text}") == f"da3c.yaml: algorithm: {reason}"

    @pytest.mark.parametrize("text", ["", "algorithm:"])
    def test_either_a_path_or_a_name_is_needed(self, yaml, text):
        assert "give 'path' (a folder) or 'name'" in refusal_of_text(
            yaml, f"{PARAMETER_SERVER}:\n{text}\n"
        )


class TestExploitation:
    """An RLX server reads the checkpoints of the parameter server's section."""

    SECTION = f"{PARAMETER_SERVER}: {{--checkpoint-dir: cps, --aws-keys: keys.yaml}}\n"

    def found(self, yaml, *flags, rlx_server="", section=SECTION):
        yaml.write_text(f"{section}relaax-rlx-server: {{{rlx_server}}}\n{NAMED}")
        return load_rlx_server(["--config", str(yaml), *flags]).options

    @pytest.mark.parametrize(
        ("flags", "checkpoint"),
        [
            (["--exploit"], "latest"),
            (["--exploit", "best"], "best"),
            (["--exploit", "120000"], "120000"),
            (["--exploit", "cp-120000.json"], "120000"),
            (["--exploit", "cps/cp-7.0123456789ab.safetensors"], "7"),
            (["--exploit", "cp-7"], "7"),
        ],
    )
    def test_a_checkpoint_is_named_and_its_place_is_known(self, yaml, flags, checkpoint):
        found = self.found(yaml, *flags)
        assert found.exploit == checkpoint
        assert found.checkpoint_dir == Path("cps")
        assert found.aws.keys == Path("keys.yaml")

    def test_the_path_of_a_checkpoint_names_its_place_too(self, yaml):
        """Whatever the file says: its step may be another checkpoint elsewhere."""
        found = self.found(yaml, "--exploit", "other/run/cp-7.json")
        assert (found.exploit, found.checkpoint_dir) == ("7", Path("other/run"))
        section = "--exploit: /far/cp-8.json, --checkpoint-aws-s3: [bucket, key]"
        with pytest.raises(ConfigurationError, match="is in the folder /far, and --checkpoint-aws"):
            self.found(yaml, rlx_server=section)
        with pytest.raises(ConfigurationError, match="in the folder other, and --checkpoint-dir"):
            self.found(yaml, "--exploit", "other/cp-7.json", "--checkpoint-dir", "cps")
        flags = ["--onnx", "policy.onnx", "--checkpoint", "other/run/cp-7.json"]
        written = load_export(["--config", str(yaml), *flags]).options
        assert (written.checkpoint, written.checkpoint_dir) == ("7", Path("other/run"))

    def test_a_flag_and_its_own_section_name_another_place(self, yaml):
        s3 = S3Location("bucket", "key")
        found = self.found(yaml, "--exploit", "--checkpoint-aws-s3", "bucket", "key")
        assert (found.checkpoint_dir, found.checkpoint_aws_s3) == (None, s3)
        section = "--exploit: best, --checkpoint-aws-s3: [bucket, key]"
        found = self.found(yaml, rlx_server=section)
        assert (found.exploit, found.checkpoint_dir, found.checkpoint_aws_s3) == ("best", None, s3)

    def test_without_it_the_place_is_none_of_its_business(self, yaml):
        assert self.found(yaml).checkpoint_dir is None

    @pytest.mark.parametrize("flag", [["--stochastic"], ["--checkpoint-dir", "cps"]])
    def test_what_has_no_effect_without_it_is_refused(self, yaml, flag):
        message = refusal(lambda: self.found(yaml, *flag))
        assert message.startswith(f"{flag[0]}: has no effect without --exploit")

    def test_what_is_no_checkpoint_is_refused(self, yaml):
        message = refusal(lambda: self.found(yaml, "--exploit", "newest"))
        assert "must be latest, latest-N, best or a step" in message


HELD = ["--replay-servers", "a:1"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([*HELD, "--save-replay"], "replay servers hold the steps: give these --checkpoint-dir"),
        (["--save-replay"], "--save-replay needs --checkpoint-dir"),
        ([*HELD, "--lease", "5"], "--lease: replay servers hold the steps"),
        ([*HELD, "--evict-interval", "5"], "--evict-interval: replay servers hold the steps"),
        (["--evict-interval", "5"], "--evict-interval: without --evict-after nothing is evicted"),
        (
            ["--publish-interval", "1", "--publish-every", "5"],
            "--publish-interval: with --publish-every the learner publishes by its steps",
        ),
    ],
)
def test_options_of_a_learner_that_would_have_no_effect_are_refused(yaml, flags, message):
    yaml.write_text(NAMED)
    assert message in refusal(lambda: load_learner(["--config", str(yaml), *flags]))


class TestExport:
    def test_the_place_is_that_of_the_parameter_server(self, yaml):
        yaml.write_text(f"{PARAMETER_SERVER}: {{--checkpoint-dir: cps}}\n{NAMED}")
        found = load_export(["--config", str(yaml), "--onnx", "policy.onnx"]).options
        assert (found.checkpoint, found.checkpoint_dir) == ("latest", Path("cps"))
        assert (found.onnx, found.saved_model) == (Path("policy.onnx"), None)

    def test_something_must_be_written(self, yaml):
        assert "--onnx FILE or --saved-model DIR" in refusal_of_text(yaml, NAMED, load_export)


class TestAccessFile:
    """The section access is in the YAML file, or in a file that it names."""

    def test_its_keys_are_those_of_the_section(self, yaml, tmp_path):
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "access.yaml").write_text("--insecure: true\n")
        (tmp_path / "sub" / "my.yaml").write_text(f"access: access.yaml\n{NAMED}")
        for load in (load_parameter_server, load_rlx_server, load_learner, load_replay_server):
            assert load(["--config", "sub/my.yaml"]).options.insecure

    def test_what_it_names_is_in_its_own_folder(self, yaml, tmp_path):
        for folder in ("sub", "sub/own"):
            (tmp_path / folder).mkdir()
        for name in ("tokens", "sub/tokens", "sub/own/tokens"):
            (tmp_path / name).touch()
        (tmp_path / "sub" / "own" / "access.yaml").write_text("--auth-token-file: tokens\n")
        (tmp_path / "sub" / "my.yaml").write_text(f"access: own/access.yaml\n{NAMED}")
        for load in (load_parameter_server, load_rlx_server, load_learner, load_replay_server):
            found = load(["--config", "sub/my.yaml"]).options.auth_token_file
            assert found == tmp_path / "sub" / "own" / "tokens"

    @pytest.mark.parametrize("section", ["access", "relaax-rlx-server"])
    def test_what_a_section_names_is_beside_the_yaml_file(self, yaml, tmp_path, section):
        (tmp_path / "sub" / "s").mkdir(parents=True)
        (tmp_path / "sub" / "s" / "ca.crt").touch()
        (tmp_path / "sub" / "my.yaml").write_text(f"{section}: {{--tls-ca: s/ca.crt}}\n{NAMED}")
        found = load_rlx_server(["--config", "sub/my.yaml"]).options.tls_ca
        assert found == tmp_path / "sub" / "s" / "ca.crt"

    def test_a_file_in_the_working_directory_alone_is_taken(self, yaml, tmp_path):
        (tmp_path / "sub").mkdir()
        (tmp_path / "tokens").touch()
        (tmp_path / "sub" / "my.yaml").write_text(
            f"access: {{--auth-token-file: tokens, --tls-ca: missing}}\n{NAMED}"
        )
        found = load_rlx_server(["--config", "sub/my.yaml"]).options
        assert found.auth_token_file == Path("tokens")
        assert found.tls_ca == tmp_path / "sub" / "missing"

    def test_a_path_of_a_flag_is_one_of_the_working_directory(self, yaml, tmp_path):
        (tmp_path / "sub").mkdir()
        for name in ("tokens", "sub/tokens"):
            (tmp_path / name).touch()
        (tmp_path / "sub" / "my.yaml").write_text(NAMED)
        flags = ["--config", "sub/my.yaml", "--auth-token-file", "tokens"]
        assert load_rlx_server(flags).options.auth_token_file == Path("tokens")

    def test_one_that_is_missing_is_named(self, yaml):
        message = refusal_of_text(yaml, f"access: other.yaml\n{NAMED}")
        assert message == "cannot read other.yaml: No such file or directory"

    @pytest.mark.parametrize(
        ("keys", "reason"),
        [
            ("--tls-certificate: x", "--tls-certificate: no such key; "),
            ("--insecure: 1.5", "--insecure: must be "),
            ("--proxy: https://a:1", "--proxy: must be http://HOST:PORT, "),
        ],
    )
    def test_a_mistake_is_named_where_it_stands(self, yaml, keys, reason):
        Path("other.yaml").write_text(f"{keys}\n")
        for load in (load_parameter_server, load_rlx_server):
            message = refusal_of_text(yaml, f"access: other.yaml\n{NAMED}", load)
            assert message.startswith(f"other.yaml: {reason}")
            message = refusal_of_text(yaml, f"access: {{{keys}}}\n{NAMED}", load)
            assert message.startswith(f"da3c.yaml: access: {reason}")

    @pytest.mark.parametrize("content", ["", "# not guarded\n", "{}\n"])
    def test_one_that_is_empty_guards_nothing(self, yaml, content):
        Path("other.yaml").write_text(content)
        yaml.write_text(f"access: other.yaml\n{NAMED}")
        found = load_parameter_server(["--config", str(yaml)]).options
        assert found == ParameterServerOptions()

    def test_one_without_keys_is_refused(self, yaml):
        Path("other.yaml").write_text("secrets/tokens\n")
        message = refusal_of_text(yaml, f"access: other.yaml\n{NAMED}")
        assert message == "other.yaml holds no keys, such as --tls-cert"
