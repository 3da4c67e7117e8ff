"""
Draw every setting of Apache Hudi from the option classes of its releases, as ``hudi_py/config/hudi_options.tsv``.

Each release's Spark bundle is put on the class path of a JVM; all classes that hold a ``ConfigProperty`` are loaded and
asked by reflection. What is a setting without such a property (a text in the classes that starts with ``hoodie.``)
is listed too, without a default. Usage: ``python tools/make_option_list.py``
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

from real_hudi.bundle import find_bundle
from real_hudi.session import HudiJvm, start_spark

ROOT: Final = Path(__file__).resolve().parents[1]
RELEASES: Final = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
TARGET: Final = ROOT / "hudi_py" / "config" / "hudi_options.tsv"
_PROPERTY: Final = "org.apache.hudi.common.config.ConfigProperty"
_DESCRIPTOR: Final = b"Lorg/apache/hudi/common/config/ConfigProperty;"
_TEXT_KEY: Final = re.compile(rb"\x01(..)(hoodie\.[a-zA-Z0-9_.\-]+)", re.DOTALL)
_DOC_CHARACTERS_MAX: Final = 160


def classes_with_properties(jar: Path) -> list[str]:
    """Names of all classes that mention the type of a setting."""
    with zipfile.ZipFile(jar) as bundle:
        return sorted(
            name.removesuffix(".class").replace("/", ".")
            for name in bundle.namelist()
            if name.startswith("org/apache/hudi/") and name.endswith(".class") and _DESCRIPTOR in bundle.read(name)
        )


def keys_in_texts(jar: Path) -> dict[str, str]:
    """Constants of all classes that look like a setting, with the class that holds them."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(jar) as bundle:
        for name in sorted(bundle.namelist()):
            if not name.startswith("org/apache/hudi/") or not name.endswith(".class"):
                continue
            for size, text in _TEXT_KEY.findall(bundle.read(name)):
                length = int.from_bytes(size, "big")
                key = text[:length].decode()
                if len(key) == length:
                    found.setdefault(key, name.removesuffix(".class").rpartition("/")[2].partition("$")[0])
    return found


def declared(hudi: HudiJvm, name: str) -> list[dict[str, Any]]:
    """Settings that one class holds."""
    properties = []
    java_class = hudi.class_of(name)
    module = None
    for field in java_class.getDeclaredFields():
        if field.getType().getName() != _PROPERTY:
            continue
        field.setAccessible(True)
        if not hudi.jvm.java.lang.reflect.Modifier.isStatic(field.getModifiers()):
            if not name.endswith("$"):
                continue
            if module is None:  # a Scala object keeps its fields in its only instance
                module = java_class.getField("MODULE$").get(None)
            properties.append(described(field.get(module), name))
        else:
            properties.append(described(field.get(None), name))
    return [each for each in properties if each]


def described(found: Any, class_name: str) -> dict[str, Any]:
    """One setting as plain values."""
    if found is None:
        return {}
    default = found.defaultValue() if found.hasDefaultValue() else None
    since, deprecated = found.getSinceVersion(), found.getDeprecatedVersion()
    alternatives = found.getAlternatives()
    return {
        "key": found.key(),
        "alternatives": [alternatives.get(position) for position in range(alternatives.size())],
        "default": None if default is None else str(default.toString() if hasattr(default, "toString") else default),
        "since": since.get() if since.isPresent() else "",
        "deprecated": deprecated.get() if deprecated.isPresent() else "",
        "doc": found.doc(),
        "class": class_name.rpartition(".")[2].partition("$")[0],
    }


def drawn(version: str) -> dict[str, Any]:
    """What one release has; runs in a process of its own, because one JVM holds one release."""
    jar = find_bundle(version)
    with tempfile.TemporaryDirectory() as scratch:
        hudi = HudiJvm(version, start_spark(jar, Path(scratch)))
        properties, failed = [], []
        for name in classes_with_properties(jar):
            try:
                properties.extend(declared(hudi, name))
            except Exception as error:  # noqa: BLE001 - a class of an engine that is not here
                failed.append(f"{name}: {str(error).splitlines()[-1][:200]}")
        hudi.spark.stop()
    return {"properties": properties, "texts": keys_in_texts(jar), "failed": failed}


def folded(releases: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each setting under its newest name, with every spelling that any release takes."""
    entries: dict[str, dict[str, Any]] = {}
    name_of: dict[str, str] = {}
    for version in reversed(RELEASES):
        for each in sorted(releases[version]["properties"], key=lambda each: (each["key"], each["class"])):
            name = name_of.get(each["key"], each["key"])
            entry = entries.setdefault(name, {**each, "alternatives": set(), "releases": []})
            entry["doc"] = entry["doc"] or each["doc"]
            entry["alternatives"].update({each["key"], *each["alternatives"]} - {name})
            entry["releases"] += [version] if version not in entry["releases"] else []
            for spelling in (each["key"], *each["alternatives"]):
                name_of.setdefault(spelling, name)
    for version in reversed(RELEASES):
        for text, class_name in releases[version]["texts"].items():
            if text not in name_of and _is_setting(text, name_of):
                entries.setdefault(text, {"key": text, "class": class_name, "releases": []})["releases"].append(version)
    return [entries[name] for name in sorted(entries)]


def _is_setting(text: str, names: dict[str, str]) -> bool:
    """Not the beginning of the names of others, and not a file."""
    begins = any(name.startswith(f"{text}.") for name in names)
    return not begins and not text.endswith(".") and not text.startswith("hoodie.properties")


def line_of(entry: dict[str, Any]) -> str:
    """One line of the file."""
    default = entry.get("default")
    columns = (
        entry["key"],
        " ".join(version for version in RELEASES if version in entry["releases"]),
        entry["class"],
        " ".join(sorted(entry.get("alternatives", ()))),
        "" if default is None else default,
        entry.get("deprecated", ""),
        first_sentence(entry.get("doc") or ""),
    )
    return "\t".join(" ".join(column.split()) for column in columns)


def first_sentence(text: str) -> str:
    """Of a documentation, on one line, cut where it is long."""
    line = " ".join(text.split())
    sentence = re.split(r"(?<=[a-z0-9)])\. ", line, maxsplit=1)[0].rstrip(".")
    return sentence if len(sentence) <= _DOC_CHARACTERS_MAX else sentence[: _DOC_CHARACTERS_MAX - 1].rstrip() + "…"


def main() -> None:
    """Ask every release, each in a process of its own, and write the file."""
    releases = {}
    for version in RELEASES:
        done = subprocess.run([sys.executable, __file__, version], stdout=subprocess.PIPE, check=True)
        releases[version] = json.loads(done.stdout)
        for failure in releases[version]["failed"]:
            print(f"{version}: not asked: {failure}", file=sys.stderr)
    header = f"# Settings of Apache Hudi {', '.join(RELEASES)}, by tools/make_option_list.py\n"
    columns = "# " + "\t".join(("name", "releases", "class", "spellings", "default", "deprecated", "doc")) + "\n"
    lines = [line_of(entry) + "\n" for entry in folded(releases)]
    TARGET.write_text(header + columns + "".join(lines), encoding="utf-8")
    print(f"{TARGET}: {len(lines)} settings")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(drawn(sys.argv[1])))
    else:
        main()
