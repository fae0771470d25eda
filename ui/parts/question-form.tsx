import type { ComponentChildren } from "preact";
import type { Outcome } from "#ui/state/question.ts";
import { Button, Empty, Fault } from "./small.tsx";

interface Props<T> {
  readonly outcome: Outcome<T>;
  /** On the button. */
  readonly action: string;
  readonly onAsk: () => Promise<void>;
  readonly fields: ComponentChildren;
  /** Stands there before the first question. */
  readonly title: string;
  readonly note: string;
  readonly answer: (answer: T) => ComponentChildren;
}

/** Fields, a button, and below what became of the question. */
export function QuestionForm<T>({ outcome, action, onAsk, fields, title, note, answer }: Props<T>) {
  const submit = (event: Event): void => {
    event.preventDefault();
    void onAsk();
  };
  return (
    <>
      <form class="form" onSubmit={submit}>
        {fields}
        <Button label={action} kind="main" busy={outcome.kind === "busy"} />
      </form>
      <div aria-live="polite">
        {outcome.kind === "none" && <Empty title={title}>{note}</Empty>}
        {outcome.kind === "failed" && <Fault text={outcome.text} />}
        {outcome.kind === "answer" && answer(outcome.answer)}
      </div>
    </>
  );
}
