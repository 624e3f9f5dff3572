"""Writes every `expected.json` anew from the oracle: `make golden`. Review and commit it alone."""

import json
import sys

from tests.golden_cases import FOLDER, Json, answers, golden_cases


def as_text(answer: Json) -> str:
    """JSON with one line per cell and finding, so that a diff reads like the change it is."""
    audits = []
    for audit in answer["audits"]:
        parts = [
            f'      "{name}": ' + (_lines(value) if isinstance(value, list) else json.dumps(value))
            for name, value in audit.items()
        ]
        audits.append("    {\n" + ",\n".join(parts) + "\n    }")
    return '{\n  "audits": [\n' + ",\n".join(audits) + "\n  ]\n}\n"


def _lines(values: list[Json]) -> str:
    if not values:
        return "[]"
    return "[\n" + ",\n".join(f"        {json.dumps(v)}" for v in values) + "\n      ]"


def main() -> None:
    """Rewrites the answers of all cases and names those that changed."""
    for case in golden_cases():
        path = FOLDER / case.name / "expected.json"
        text = as_text(answers(case))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"changed: {case.name}\n")


if __name__ == "__main__":
    main()
