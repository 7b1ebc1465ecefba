"""What the capacity file may say of each provider. The providers themselves live a layer above."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROVIDERS", "ProviderOptions"]


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Names of a provider's options."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Return all option names."""
        return self.required + self.optional


PROVIDERS: dict[str, ProviderOptions] = {
    "placeholder": ProviderOptions(optional=("placeholder_image",)),
    "scale": ProviderOptions(required=("group", "version", "plural", "name"), optional=("namespace",)),
    "none": ProviderOptions(),
}
