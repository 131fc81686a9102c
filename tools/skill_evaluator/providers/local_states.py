"""The local engine's state after what calls share: evaluated once, saved, and restored before each of them.

What a model computes depends in the last digits on which tokens are evaluated together. So every prompt goes the same
way, cold or warm: what its component's prompts have in common, then the rest of it, then its last token with the
answer. A saved state is that of the first or second step to the bit; an answer depends on no other call.
"""

import hashlib
import http.client
import json
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_MOST_BYTES = 512 << 20  # of saved states; further ones are evaluated again. A token of a 135M model takes 23 KB.
_USER = "(what the user says)"


class SharedStates:
    """The engine of one provider, which one thread at a time may use, and a temporary folder of saved states."""

    def __init__(self, library: Any, params: Any) -> None:
        """Start the engine, with an address on loopback that only this object knows the key of."""
        self._folder = tempfile.TemporaryDirectory(prefix="skill-evaluator-")
        self._key = secrets.token_hex()
        params.slot_save_path = f"{self._folder.name}/"
        params.api_keys = [self._key]
        params.swa_full = True  # else a restored state is shorter than the one that was saved
        params.n_ctx_checkpoints = 0  # further saved states, which would depend on the calls before
        self.engine = library.Server(params)

    def close(self) -> None:
        """Delete the saved states."""
        self._folder.cleanup()

    def enter(self, system: str, user: str) -> bool:
        """Bring the engine to the state after this prompt; return False when the call must begin from nothing."""
        prompt = self._rendered(system, user)
        if self._restore(prompt):
            return True
        shared = self._rendered(system, _USER).partition(_USER)[0]
        begun = bool(shared) and (self._restore(shared) or self._evaluate(shared, go_on=False))
        return self._evaluate(prompt, go_on=begun)

    def _rendered(self, system: str, user: str) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return str(self._post("/apply-template", {"messages": messages}).get("prompt", ""))

    def _evaluate(self, text: str, *, go_on: bool) -> bool:
        """Evaluate a prompt, after the part of it that the engine holds, and save the state if there is room."""
        answer = self.engine.handle_completions({"prompt": text, "n_predict": 0, "cache_prompt": go_on})
        if "error" in answer:  # too long: the call itself will say so
            return False
        if sum(file.stat().st_size for file in Path(self._folder.name).iterdir()) < _MOST_BYTES:
            file = self._file(text)
            written = self._post("/slots/0?action=save", {"filename": file.name}).get("n_written")
            if file.exists() and file.stat().st_size != written:  # the disk is full; the engine would die of this file
                file.unlink()
        return True

    def _restore(self, text: str) -> bool:
        file = self._file(text)
        return file.exists() and "error" not in self._post("/slots/0?action=restore", {"filename": file.name})

    def _file(self, text: str) -> Path:
        return Path(self._folder.name, hashlib.sha256(text.encode()).hexdigest())

    def _post(self, path: str, body: Any) -> dict[str, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.engine.listening_address).netloc)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer if isinstance(answer, dict) else {}
