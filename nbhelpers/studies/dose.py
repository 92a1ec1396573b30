"""Doses of a treatment, here and in a paper: one that is far from the paper's is another treatment.

Owns the rule, and the share of a machine that housekeeping takes.
"""

from .design import Design

HOUSEKEEPING = 0.125  # of the CPUs: what HK leaves to the system in Persson et al. 2025
MOST = 2.0  # a dose by more than this factor above or below the paper's is another treatment


def other_dose(what: str, here: float, paper: float) -> str:
    """Why a treatment is not the paper's, by its dose; empty if it is.

    Parameters
    ----------
    what
        The treatment.
    here, paper
        Its dose, as a share.

    Examples
    --------
    >>> other_dose("housekeeping", 0.125, 0.125)
    ''
    >>> other_dose("housekeeping", 0.5, 0.125)
    'housekeeping takes 50 % of the CPUs here, 12.5 % in the paper: more than twice as much'
    """
    if paper / MOST <= here <= paper * MOST:
        return ""
    than = "more than twice as much" if here > paper else "less than half as much"
    return f"{what} takes {_percent(here)} of the CPUs here, {_percent(paper)} in the paper: {than}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def housekeeping_share(design: Design, config: str) -> float:
    """The share of the CPUs that a configuration leaves to the system; 0 where it does not exist.

    Parameters
    ----------
    design
        Of the study.
    config
        Name of the configuration.
    """
    found = [one for one in design.listed if one.name == config and not one.missing]
    if not found:
        return 0.0
    return len(found[0].house) / (len(found[0].house) + len(found[0].cpus))


def other_housekeeping(design: Design, config: str, paper: float = HOUSEKEEPING) -> str:
    """Why the housekeeping of a configuration is not the paper's; empty if it is.

    Parameters
    ----------
    design, config
        As of `housekeeping_share`.
    paper
        The share of the CPUs that it takes in the paper.
    """
    share = housekeeping_share(design, config)
    return other_dose(f"housekeeping ({config})", share, paper) if share else ""
