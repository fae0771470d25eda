import { LANGUAGE_NAMES, LANGUAGES } from "#lib/languages.ts";
import { Select } from "#ui/parts/inputs.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import type { Choice } from "#ui/state/language.ts";
import { useStore } from "#ui/state/store.ts";

/** Each language by its own name, so that it is found by who reads no other. */
export function LanguageSelect() {
  const { language } = useEnvironment();
  const { t } = useWords();
  const act = useAction();
  const chosen = useStore(language.chosen);
  const options: readonly (readonly [Choice, string])[] = [
    ["auto", t("settings.asBrowser")],
    ...LANGUAGES.map((one) => [one, LANGUAGE_NAMES[one]] as const),
  ];
  return (
    <Select
      label={t("settings.language")}
      value={chosen}
      options={options}
      onChange={(choice) => act(() => language.choose(choice), t("settings.languageFailed"))}
    />
  );
}
