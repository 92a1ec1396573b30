"""JSON Schema: the first thing that is wrong with what somebody wrote. Owns how jsonschema is
imported.
"""

import sys
from types import ModuleType


def jsonschema() -> ModuleType:
    """The module, in 0.2 s instead of 2.6.

    When it is imported, it compiles 38 grammars for identifiers beyond ASCII (format "iri"), if
    rfc3987_syntax is installed, as it is with JupyterLab. No schema of ours, of papermill or of
    Jupyter's notebooks asks for that format.
    """
    # None makes an import fail; the table's type does not know that
    hidden = sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    try:
        import jsonschema
        import jsonschema.exceptions
    finally:
        if hidden is None:
            del sys.modules["rfc3987_syntax"]
    return jsonschema


def schema_error(schema: dict, content: object):
    """The error that tells most (`message`, `absolute_path`, `schema`), or None where the content
    is as the schema (draft 2020-12) wants it.
    """
    module = jsonschema()
    errors = list(module.Draft202012Validator(schema).iter_errors(content))
    try:
        return module.exceptions.best_match(errors)
    except TypeError:  # it compares places, and YAML's keys may be numbers beside words
        return errors[0]


def place_of(error) -> str:
    """Where in the content an error is, as a/b/0."""
    return "/".join(map(str, error.absolute_path)) or "the top"
