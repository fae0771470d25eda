import type { ConfigFile } from "#ui/api/config-types.ts";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import type { Proposal } from "./editor-apply.tsx";

interface Props {
  readonly file: ConfigFile;
  readonly onShow: (proposal: Proposal) => void;
}

/** What the file held before; each can be looked at and put back. */
export function Versions({ file, onShow }: Props) {
  const { link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const act = useAction();
  const show = (version: number): Promise<boolean> =>
    act(async () => {
      const { text } = await link.get<{ text: string }>(`api/svc/config/versions/${version}`);
      onShow({ kind: "version", version, before: file.text, after: text });
    }, t("editor.versionGone"));
  return (
    <Panel title={t("editor.versions")}>
      {file.versions.length === 0 && <p class="note">{t("editor.noVersions")}</p>}
      <ul class="lines">
        {file.versions.map(({ id, size_bytes: size, written_at: at }) => (
          <li key={id} class="line">
            <span class="line-main">
              <span>{t("editor.version", { version: String(id) })}</span>
              <small>
                {words.moment(at * 1000)}, {words.bytes(size)}
              </small>
            </span>
            <Button
              label={t("editor.compare")}
              name={t("editor.compareOne", { version: String(id) })}
              onPress={() => show(id)}
            />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
