import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useWords } from "#ui/state/context.ts";
import { NoticeList } from "./notice-list.tsx";
import { Button, CloseButton } from "./small.tsx";

/** The browser's own dialog: it keeps the focus inside, closes by Escape, and gives the focus back. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const { t } = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  const onBackdrop = (event: MouseEvent): void => {
    if (event.target === dialog.current) dialog.current?.close();
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={id} onClose={onClose} onClick={onBackdrop}>
      <div class="dialog-body">
        <div class="panel-head">
          <h2 id={id}>{title}</h2>
          <CloseButton label={t("frame.closeWindow")} onPress={() => dialog.current?.close()} />
        </div>
        {children}
      </div>
      <NoticeList />
    </dialog>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({
  title,
  text,
  action,
  onAnswer,
}: {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  readonly onAnswer: (yes: boolean) => void;
}) {
  const { t } = useWords();
  return (
    <Dialog title={title} onClose={() => onAnswer(false)}>
      <p>{text}</p>
      <div class="actions">
        <Button label={t("common.cancel")} onPress={() => onAnswer(false)} />
        <Button label={action} kind="danger" onPress={() => onAnswer(true)} />
      </div>
    </Dialog>
  );
}
