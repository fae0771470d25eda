import { useState } from "preact/hooks";
import type { ManagedInbound } from "#ui/api/admin-types.ts";
import { EditForm, useFields } from "#ui/parts/edit-form.tsx";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { namesOf, type BulkStep } from "#ui/state/bulk-steps.ts";
import { useWords } from "#ui/state/context.ts";
import { changesOf, NEW_USER, type UserFields } from "#ui/state/user-fields.ts";
import { VISION } from "#ui/state/recipes.ts";
import { WordedError } from "#ui/words/words.ts";
import { RESETS } from "./user-form.tsx";

const MOST_AT_ONCE = 1000;
const SHOWN = 3;

type Fields = UserFields & { readonly count: string; readonly first: string };
const FIRST: Fields = { ...NEW_USER, name: "user-{n}", count: "10", first: "1" };

interface Props {
  readonly inbounds: readonly ManagedInbound[];
  readonly onRun: (steps: readonly BulkStep[]) => void;
  readonly onClose: () => void;
}

/** Users by a template: all alike but for the number in their names. */
export function UserBatch({ inbounds, onRun, onClose }: Props) {
  const { t } = useWords();
  const [tag, setTag] = useState(inbounds[0]?.tag ?? "");
  const { fields, set, text } = useFields<Fields>(() => FIRST);
  const inbound = inbounds.find((view) => view.tag === tag);
  const [count, first] = [Number(fields.count), Number(fields.first)];
  const isSound = Number.isInteger(count) && count >= 1 && count <= MOST_AT_ONCE && Number.isInteger(first);
  const names = isSound ? namesOf(fields.name, first, count) : [];
  const run = async (): Promise<void> => {
    if (!isSound) throw new WordedError((say) => say("bulk.countWrong", { count: MOST_AT_ONCE }));
    if (inbound === undefined) throw new WordedError((say) => say("users.noListener"));
    const { name: _pattern, ...body } = changesOf(NEW_USER, fields, inbound);
    const flow = inbound.flow ? { flow: VISION } : {};
    onRun(
      names.map((name) => ({
        listener: tag,
        name,
        method: "POST" as const,
        path: "users",
        body: { ...body, ...flow, name, inbound: tag },
      })),
    );
  };
  return (
    <EditForm title={t("bulk.template")} action={t("user.create")} onSave={run} onClose={onClose}>
      <Select
        label={t("common.listener")}
        value={tag}
        options={inbounds.map((view) => [view.tag, `${view.tag} (${view.type})`] as const)}
        onChange={setTag}
      />
      {text("name", t("bulk.pattern", { n: "{n}" }), "user-{n}", true)}
      <Input
        label={t("bulk.count")}
        type="number"
        value={fields.count}
        onInput={(next) => set({ count: next })}
      />
      <Input
        label={t("bulk.first")}
        type="number"
        value={fields.first}
        onInput={(next) => set({ first: next })}
      />
      <p class="note wide">
        {names.slice(0, SHOWN).join(", ")}
        {names.length > SHOWN && ` … ${names.at(-1)}`}
      </p>
      {text("quota", t("user.quota"), t("form.amountHint", { example: "100 GiB" }))}
      <Select
        label={t("user.quotaReset")}
        value={fields.reset}
        options={RESETS.map(([value, name]) => [value, t(name)] as const)}
        onChange={(reset) => set({ reset })}
      />
      {fields.reset === "window" && text("window", t("user.quotaWindow"), "30d", true)}
      <Input
        label={t("user.expires")}
        type="datetime-local"
        value={fields.expires}
        onInput={(expires) => set({ expires })}
      />
      {text("connections", t("user.connectionLimit"), t("form.noLimit"))}
      {text("ips", t("user.addressLimit"), t("form.noLimit"))}
      {text("labels", t("user.labels"), t("user.labelsHint"))}
    </EditForm>
  );
}
