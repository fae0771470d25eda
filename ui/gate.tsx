/** What stands instead of the pages while they cannot be shown, and above them while the Controller does not answer. */
import type { LinkState } from "./api/link.ts";
import { ApiError } from "./api/request.ts";
import { Rich } from "./parts/rich.tsx";
import { SecretForm } from "./parts/secret-form.tsx";
import { textOf, useEnvironment, useWords } from "./state/context.ts";
import type { Words } from "./words/words.ts";

export function Gate({ state }: { readonly state: Exclude<LinkState, { kind: "ready" }> }) {
  const words = useWords();
  const { t } = words;
  if (state.kind === "locked") return <AskSecret {...state} />;
  if (state.kind === "connecting") return <p class="gate-wait">{t("gate.connecting")}</p>;
  if (state.kind === "forbidden")
    return (
      <div class="gate">
        <h1>{t("gate.forbidden")}</h1>
        <p>
          <Rich text={t("gate.forbiddenText")} />
        </p>
      </div>
    );
  return (
    <div class="gate" role="alert">
      <h1>{t("gate.unreachable")}</h1>
      <p>{t("gate.unreachableText", { host: location.host, why: whyText(words, state.why) })}</p>
    </div>
  );
}

function whyText(words: Words, error: unknown): string {
  const text = textOf(words, error);
  return error instanceof ApiError ? words.t("gate.status", { status: String(error.status), text }) : text;
}

export function UnreachableBanner() {
  const { t } = useWords();
  return (
    <p class="banner" role="alert">
      {t("gate.banner")}
    </p>
  );
}

function AskSecret({ refused, staleLink }: Omit<Extract<LinkState, { kind: "locked" }>, "kind">) {
  const { link } = useEnvironment();
  const { t } = useWords();
  return (
    <SecretForm
      title={t("gate.secret")}
      label={t("gate.secret")}
      refused={refused}
      onSecret={(secret, code) => link.unlock(secret, code)}
    >
      {staleLink && (
        <p class="error" role="alert">
          {t("gate.staleLink")}
        </p>
      )}
      <p>
        <Rich text={t("gate.secretText")} />
      </p>
    </SecretForm>
  );
}
