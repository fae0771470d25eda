import { useState } from "preact/hooks";
import type { Edit, SetupListener } from "#ui/api/setup-types.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { useFields } from "#ui/parts/edit-form.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { Button } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
import { ChangeDialog } from "./change-dialog.tsx";

interface Props {
  readonly listener: SetupListener;
  readonly onChanged: () => Promise<void>;
  readonly onClose: () => void;
}

/** Where a listener listens; all else is a matter of the text. */
export function ListenerEdit({ listener: { name, hosts, ports }, onChanged, onClose }: Props) {
  const { t } = useWords();
  const { fields, text } = useFields(() => ({ listen: hosts[0] ?? "", port: ports.join(",") }));
  const [edits, setEdits] = useState<readonly Edit[] | null>(null);
  const title = t("setup.editOne", { name });
  if (edits !== null)
    return <ChangeDialog title={title} edits={edits} onChanged={onChanged} onClose={onClose} />;
  const submit = (event: Event): void => {
    event.preventDefault();
    const port = /^\d+$/.test(fields.port) ? Number(fields.port) : fields.port;
    setEdits([
      { op: "set", path: ["listeners", name, "listen"], value: fields.listen },
      { op: "set", path: ["listeners", name, "port"], value: port },
    ]);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="fields" onSubmit={submit}>
        {text("listen", t("setup.address"), "0.0.0.0", true)}
        {text("port", t("setup.port"), "443", true)}
        <p class="note wide">
          <Rich text={t("setup.editText")} />
        </p>
        <div class="actions wide">
          <Button label={t("common.cancel")} onPress={onClose} />
          <Button label={t("setup.review")} kind="main" />
        </div>
      </form>
    </Dialog>
  );
}
