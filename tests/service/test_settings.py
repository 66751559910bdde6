"""Settings: read once, unknown ones refused, secrets never shown."""

from pathlib import Path

import pytest

from service import settings as settings_module
from service.errors import ConfigurationError
from service.setting_texts import without_credentials
from service.settings import Settings, default_model_dir, read


def test_lists_are_comma_separated() -> None:
    settings = read({"FAULTLINE_KAFKA_TOPICS": "jobs, slurm=orion,", "FAULTLINE_LOG_ROOTS": "/a,s3://b/c"})
    assert settings.kafka_topics == ("jobs", "slurm=orion")
    assert settings.log_roots == ("/a", "s3://b/c")


@pytest.mark.parametrize("name", ["FAULTLINE_DATBASE_URL", "FAULTLINE_WATCH_CLUSTER", "FAULTLINE_CLIENT_TOKEN"])
def test_an_unknown_setting_stops_the_start_and_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        read({name: "x"})


def test_variables_of_other_programs_are_ignored() -> None:
    others = {
        "FAULTLINE_HOOK_CLUSTER": "orion",
        "FAULTLINE_CLIENT_URL": "https://x",
        "FAULTLINE_CLIENT_TOKEN_FILE": "/x",
    }
    assert read({"PATH": "/bin", "KAFKA_TOPICS": "x", **others}) == read({})


def test_every_wrong_value_is_named_with_what_was_expected() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({"FAULTLINE_PORT": "eighty", "FAULTLINE_TIMEZONE": "Mars/Olympus"})
    assert {error.field for error in caught.value.errors} == {"FAULTLINE_PORT", "FAULTLINE_TIMEZONE"}
    assert "Europe/Berlin" in caught.value.detail


def test_a_secret_may_come_from_a_file_and_is_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://ana:hunter2@db/faultline\n")
    settings = read({"FAULTLINE_DATABASE_URL_FILE": str(secret), "FAULTLINE_KAFKA_SASL_PASSWORD": "hunter2"})
    assert settings.database_url.get_secret_value() == "postgresql://ana:hunter2@db/faultline"
    assert "hunter2" not in "".join(settings.shown().values()) + repr(settings)
    assert settings.shown()["database_url"] == "postgresql://***@db/faultline"


def test_a_missing_secret_file_is_named() -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_KAFKA_SSL_PASSWORD_FILE"):
        read({"FAULTLINE_KAFKA_SSL_PASSWORD_FILE": "/nowhere/at/all"})


def test_a_wrong_secret_is_not_repeated_in_the_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({"FAULTLINE_PORT": "x", "FAULTLINE_KAFKA_SASL_PASSWORD": "hunter2"})
    assert "hunter2" not in caught.value.detail


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///var/x.sqlite3", "sqlite:///var/x.sqlite3"),
        ("postgresql://db/x", "postgresql://db/x"),
        ("postgresql://u:p@ss@db:5432/x?password=p", "postgresql://***@db:5432/x"),
        ("postgresql://u:p/a?ss@db/x", "postgresql://***@db/x"),
        ("postgresql://db?password=p", "postgresql://db"),
        ("sqlite:////home/a@b/x.sqlite3", "sqlite:////home/a@b/x.sqlite3"),
    ],
)
def test_credentials_are_removed_from_urls(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_the_model_trained_here_comes_before_the_packaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, packaged = tmp_path / "trained", tmp_path / "packaged"
    monkeypatch.setattr(settings_module, "trained_model_dir", lambda: trained)
    monkeypatch.setattr(settings_module, "packaged_model_dir", lambda: packaged)
    assert default_model_dir() == trained
    for folder, expected in ((packaged, packaged), (trained, trained)):
        folder.mkdir()
        (folder / "manifest.json").write_text("{}")
        assert default_model_dir() == expected
        assert read({}).model_dir == expected


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name not in settings_module.LISTS])
def test_an_empty_value_never_replaces_a_setting(name: str) -> None:
    for empty in ("", "  "):
        with pytest.raises(ConfigurationError, match=f"FAULTLINE_{name.upper()}"):
            read({f"FAULTLINE_{name.upper()}": empty})


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name not in settings_module.SECRETS])
def test_a_setting_has_no_characters_that_are_not_shown(name: str) -> None:
    for hidden in ("a\nb", "a\0b", "a\u202eb", "a\u200bb", "a\udcffb"):
        with pytest.raises(ConfigurationError, match=f"FAULTLINE_{name.upper()}"):
            read({f"FAULTLINE_{name.upper()}": hidden})


@pytest.mark.parametrize(
    "name", [name for name, field in Settings.model_fields.items() if field.annotation in {int, float, float | None}]
)
def test_a_number_has_a_largest_value_and_a_short_message(name: str) -> None:
    for number in ("9" * 400, "9999999999", "-1", "nan", "inf", "1e308", "x" * 100_000):
        with pytest.raises(ConfigurationError, match=f"FAULTLINE_{name.upper()}") as refused:
            read({f"FAULTLINE_{name.upper()}": number})
        assert len(str(refused.value)) < 600


@pytest.mark.parametrize("name", settings_module.SECRETS)
def test_an_empty_secret_file_is_refused_and_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("\n")
    with pytest.raises(ConfigurationError, match=f"FAULTLINE_{name.upper()}_FILE"):
        read({f"FAULTLINE_{name.upper()}_FILE": str(file)})


def test_a_secret_given_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("a" * 40)
    with pytest.raises(ConfigurationError, match="only one"):
        read({"FAULTLINE_PROXY_SECRET": "b" * 40, "FAULTLINE_PROXY_SECRET_FILE": str(file)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROXY_SECRET", "s" * 31),
        ("HOST", "*"),
        ("HOST", "0.0.0.0 "),
        ("PUBLIC_URL", "https://*"),
        ("PUBLIC_URL", "faultline.example"),
        ("PUBLIC_URL", "https://ana:pass@faultline.example"),
        ("TRUSTED_PROXIES", "*"),
        ("TRUSTED_PROXIES", "0.0.0.0/0"),
        ("TRUSTED_PROXIES", "0.0.0.0/1,128.0.0.0/1"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,2000::/3"),
        ("TRUSTED_PROXIES", "::ffff:0:0/96"),
        ("TRUSTED_PROXIES", ",".join(f"{first}.0.0.0/8" for first in range(1, 32))),
        ("LOG_NETWORKS", "::/1,8000::/1"),
    ],
)
def test_a_value_that_opens_the_service_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"FAULTLINE_{name}") as caught:
        read({f"FAULTLINE_{name}": value})
    assert "pass@" not in caught.value.detail


def test_all_private_networks_may_hold_proxies() -> None:
    private = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7,::1,10.1.0.0/16"
    assert len(read({"FAULTLINE_TRUSTED_PROXIES": private}).trusted_proxies) == 7


def test_a_network_is_named_by_its_first_address() -> None:
    """The server takes 10.1.2.3/8 for the name of a host, and would trust no proxy."""
    assert read({"FAULTLINE_TRUSTED_PROXIES": "10.1.2.3/8,fd12::5/16,10.0.0.7"}).trusted_proxies == (
        "10.0.0.0/8",
        "fd12::/16",
        "10.0.0.7",
    )


def test_credentials_in_any_setting_are_not_shown() -> None:
    shown = read(
        {
            "FAULTLINE_LOG_ROOTS": "https://ana:hunter22@logs.example/a,s3://AKIAIOSFODNN7EXAMPLE@bucket/b",
            "FAULTLINE_OIDC_ISSUER": "https://ana:hunter22@id.example",
            "FAULTLINE_DATABASE_URL": "postgresql:ana:hunter22@db/x",
        }
    ).shown()
    assert "hunter22" not in str(shown)
    assert "AKIA" not in str(shown)


ENDPOINT = {"FAULTLINE_SECOND_READER_URL": "https://llm.example/v1", "FAULTLINE_SECOND_READER_MODEL": "local"}


def test_the_second_reader_is_off_unless_an_endpoint_is_set(tmp_path: Path) -> None:
    assert read({}).second_reader() is None
    key = tmp_path / "key"
    key.write_text("sk-hunter2\n")
    settings = read({**ENDPOINT, "FAULTLINE_SECOND_READER_API_KEY_FILE": str(key)})
    options = settings.second_reader()
    assert options is not None
    assert (options.url, options.model, options.api_key) == ("https://llm.example/v1", "local", "sk-hunter2")
    assert "hunter2" not in "".join(settings.shown().values()) + repr(settings)
    for plain in ("http://127.0.0.1:8000/v1", "http://[::1]:8000/v1", "http://localhost:8000/v1"):
        assert read({**ENDPOINT, "FAULTLINE_SECOND_READER_URL": plain}).second_reader() is not None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"FAULTLINE_SECOND_READER_URL": "http://llm.example/v1"}, "FAULTLINE_SECOND_READER_URL"),
        ({"FAULTLINE_SECOND_READER_URL": "http://127.0.0.1.example/v1"}, "FAULTLINE_SECOND_READER_URL"),
        ({"FAULTLINE_SECOND_READER_URL": "https://ana:secret@llm.example/v1"}, "FAULTLINE_SECOND_READER_URL"),
        ({"FAULTLINE_SECOND_READER_URL": "https://llm.example/v1?key=1"}, "FAULTLINE_SECOND_READER_URL"),
        ({"FAULTLINE_SECOND_READER_URL": "ftp://llm.example"}, "FAULTLINE_SECOND_READER_URL"),
        ({"FAULTLINE_SECOND_READER_URL": ""}, "FAULTLINE_SECOND_READER_URL"),
        ({"FAULTLINE_SECOND_READER_MODEL": ""}, "FAULTLINE_SECOND_READER_MODEL"),
        ({"FAULTLINE_SECOND_READER_HOURLY_LIMIT": "0"}, "FAULTLINE_SECOND_READER_HOURLY_LIMIT"),
        ({"FAULTLINE_SECOND_READER_TIMEOUT_S": "0"}, "FAULTLINE_SECOND_READER_TIMEOUT_S"),
        ({"FAULTLINE_SECOND_READER_ALLOW_HTTP": "perhaps"}, "FAULTLINE_SECOND_READER_ALLOW_HTTP"),
    ],
)
def test_a_wrong_setting_of_the_second_reader_stops_the_start(changes: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({**ENDPOINT, **changes})
    assert named in {error.field for error in caught.value.errors}
    assert "secret" not in caught.value.detail


def test_endpoint_and_model_of_the_second_reader_belong_together() -> None:
    for missing, named in (("URL", "MODEL"), ("MODEL", "MODEL")):
        given = {name: value for name, value in ENDPOINT.items() if not name.endswith(missing)}
        with pytest.raises(ConfigurationError, match=f"FAULTLINE_SECOND_READER_{named}"):
            read(given)
    with pytest.raises(ConfigurationError, match="FAULTLINE_SECOND_READER_API_KEY"):
        read({"FAULTLINE_SECOND_READER_API_KEY": "sk-hunter2"})
    allowed = read(
        {**ENDPOINT, "FAULTLINE_SECOND_READER_URL": "http://llm/v1", "FAULTLINE_SECOND_READER_ALLOW_HTTP": "1"}
    )
    assert allowed.second_reader() is not None
