import { useEffect, useState } from "preact/hooks";
import { useEnvironment, useWords } from "#ui/state/context.ts";
import { useStore } from "#ui/state/store.ts";
import { CloseButton } from "./small.tsx";

/**
 * Where notices stand: on the page, and in every dialog, because an open one makes all that is outside of it inert and
 * unheard. The list that came last has them.
 */
export function NoticeList() {
  const { notices } = useEnvironment();
  const { t } = useWords();
  const shown = useStore(notices.shown);
  const lists = useStore(notices.lists);
  const [me] = useState(() => Symbol("list"));
  useEffect(() => {
    notices.lists.set([...notices.lists.value, me]);
    return () => notices.lists.set(notices.lists.value.filter((list) => list !== me));
  }, []);
  return (
    <div class="notices" aria-live="polite">
      {lists.at(-1) === me &&
        shown.map(({ id, kind, text }) => (
          <div key={id} class={`notice ${kind}`}>
            <span>{text}</span>
            <CloseButton label={t("frame.dismiss")} onPress={() => notices.drop(id)} />
          </div>
        ))}
    </div>
  );
}
