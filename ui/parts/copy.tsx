import { useAction, useWords } from "#ui/state/context.ts";
import { Button } from "./small.tsx";

interface Props {
  readonly text: string;
  readonly label: string;
  /** Said when it has been copied. */
  readonly done: string;
}

/** Browsers lend the clipboard to https and to this machine only. */
export function CopyButton({ text, label, done }: Props) {
  const act = useAction();
  const { t } = useWords();
  const copy = (): Promise<boolean> =>
    act(() => navigator.clipboard.writeText(text), t("user.copyByHand"), done);
  return <Button label={label} onPress={copy} />;
}
