"""A config is the same whatever the layout of its JSON and the order of its lists."""

import json

import pytest

from nbhelpers.noise import NoiseConfig

from .independent import event_table
from .test_config import OWN, PUBLISHED, changed


def read(folder, data: bytes) -> NoiseConfig:
    path = folder / "config.json"
    path.write_bytes(data)
    return NoiseConfig.read(path)


def layouts(document: dict) -> list[bytes]:
    one_a_line = json.dumps(document).replace("], [", "],\n   [")
    tabs = json.dumps(document, indent="\t", separators=(" ,\r\n", " :\t"))
    return [
        text.encode()
        for text in (
            one_a_line,
            tabs,
            json.dumps(document, separators=(",", ":")),
            f"\n {json.dumps(document)}\n\n",
            json.dumps(document, indent=3, ensure_ascii=False),
            json.dumps(dict(reversed(document.items()))),
        )
    ]


@pytest.mark.parametrize("document", [OWN, PUBLISHED], ids=["own", "published"])
def test_any_layout_gives_the_same_config(tmp_path, document):
    configs = [read(tmp_path, data) for data in layouts(document)]
    for config in configs[1:]:
        assert config == configs[0] and config.digest == configs[0].digest
        assert config.events().equals(configs[0].events())


def test_lists_in_any_order_of_cpus(tmp_path):
    turned = OWN | {"cpus": dict(reversed(OWN["cpus"].items()))}
    assert read(tmp_path, json.dumps(turned).encode()) == read(tmp_path, json.dumps(OWN).encode())


def test_names_of_sources_hold_any_character(tmp_path):
    rows = [
        (0, cpu, kind, 'a "]\\ü', 10 * at, 7)
        for cpu in (12, 0, 3)
        for at, kind in enumerate(["irq", "thread"] * 9)
    ]
    config = NoiseConfig.from_events(event_table(rows))
    again = NoiseConfig.read(config.write(tmp_path / "own.json"))
    assert again == config and set(again.events()["source"]) == {'a "]\\ü'}


def test_every_event_may_have_another_source(tmp_path):
    rows = [[2 * at, 1, "SCHED_OTHER", 0, "thread", f"t{at}"] for at in range(70_000)]
    config = read(tmp_path, json.dumps(changed(["cpus"], {"0": rows})).encode())
    assert config.events()["source"].tolist() == [f"t{at}" for at in range(70_000)]
