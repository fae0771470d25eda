import { useState } from "preact/hooks";
import type { Target } from "#ui/api/setup-types.ts";
import { TextArea } from "#ui/parts/inputs-area.tsx";
import { Button, Fault, Tag } from "#ui/parts/small.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";

interface Props {
  readonly onChoose: (target: Target) => void;
}

/** Sites are visited by the program, as a browser would, and ranked. */
export function TargetProbe({ onChoose }: Props) {
  const { link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const [sites, setSites] = useState("");
  const [targets, setTargets] = useState<readonly Target[]>([]);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const rank = async (): Promise<void> => {
    const list = sites.split(/[\s,]+/).filter((site) => site !== "");
    if (list.length === 0) return;
    setBusy(true);
    try {
      const answer = await link.call<{ targets: readonly Target[] }>("POST", "api/svc/setup/targets", {
        sites: list,
      });
      setTargets(answer.targets);
      setError("");
    } catch (fault) {
      setError(textOf(words, fault));
    }
    setBusy(false);
  };
  return (
    <div class="wide probe">
      <TextArea label={t("setup.sites")} value={sites} onInput={setSites} rows={3} />
      <Button
        label={t("setup.rank")}
        busy={busy}
        disabled={sites.trim() === ""}
        onPress={() => void rank()}
      />
      <Fault text={error} />
      <ol class="targets">
        {targets.map((target) => (
          <li key={`${target.host}:${target.port}`}>
            <Found target={target} onChoose={onChoose} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Found({ target, onChoose }: { readonly target: Target } & Props) {
  const words = useWords();
  const { t } = words;
  const { host, port, faults, doubts, round_trip_ms: ms } = target;
  const name = `${host}:${port}`;
  const isUsable = faults.length === 0;
  return (
    <>
      <p>
        <bdi>{name}</bdi>{" "}
        <Tag kind={isUsable ? "yes" : "bad"}>{t(isUsable ? "setup.usable" : "setup.notUsable")}</Tag>{" "}
        {ms !== null && t("unit.ms", { value: Math.round(ms) })}{" "}
        {isUsable && <Button label={t("setup.choose", { name })} onPress={() => onChoose(target)} />}
      </p>
      {[...faults, ...doubts].map((text) => (
        <p key={text} class="note" lang="en" dir="ltr">
          {text}
        </p>
      ))}
    </>
  );
}
