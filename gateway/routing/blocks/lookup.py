"""How many tokens of one prompt a backend holds, asked of several backends: each recipe's chain is made once.

Decided here: that of a backend's ranks the best one counts. Not decided here: whether what an index says is up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gateway.routing.blocks.chain import Chain, Recipe
from gateway.routing.blocks.index import BlockIndex
from gateway.routing.blocks.prompt import TokenPrompt
from gateway.types import BackendName


class PromptChains:
    """The chains of one prompt, by recipe; ``answers`` are what was found, where that was looked up ahead.

    ``model`` is the name it is asked of, which may be an adapter's.
    """

    def __init__(self, prompt: TokenPrompt, model: str | None = None) -> None:
        self.prompt = prompt
        self._model = model
        self.answers: Mapping[BackendName, int] | None = None
        self._chains: dict[Recipe, Chain] = {}

    def chain(self, recipe: Recipe) -> Chain:
        """The chain by this recipe, as far as anybody asked for it."""
        found = self._chains.get(recipe)
        if found is None:
            adapter = recipe.adapter
            prompt = self.prompt if adapter is None else replace(self.prompt, lora=(adapter, ""))
            found = self._chains[recipe] = Chain(prompt, recipe)
        return found

    def held_tokens(self, indexes: Iterable[BlockIndex], seed: str | None, *, pads: bool) -> int | None:
        """Tokens that an engine would take from its cache, on the rank that holds the most.

        ``None`` where that cannot be told: all is held up to an image whose identity is not known, so that may be held
        too. A model of which no adapter's block was ever stored is the base model, or nothing of it is held.

        An engine always computes the last token itself, so of a prompt held to its last block one block less counts
        (vLLM 0.32.0 v1/core/kv_cache_manager.py ``get_computed_blocks``: at most ``num_tokens - 1``).
        """
        most = 0
        for index in indexes:
            recipe = index.recipe(seed, pads=pads)
            if recipe is None:
                continue
            if self._model in index.adapters:
                if recipe.seed is not None:
                    return None  # the engine's own hashes have the adapter's path in them
                recipe = replace(recipe, adapter=self._model)
            chain = self.chain(recipe)
            held = index.held_blocks(chain)
            if held == chain.full_blocks and not chain.is_whole:
                return None
            usable = (len(self.prompt.token_ids) - 1) // recipe.block_tokens
            most = max(most, min(held, usable) * recipe.block_tokens)
        return most
