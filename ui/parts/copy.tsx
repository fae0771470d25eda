import { useAction } from "#ui/state/context.ts";
import { Button } from "./small.tsx";

/** Browsers lend the clipboard to https and to this machine only. */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const act = useAction();
  const copy = (): Promise<boolean> =>
    act(() => navigator.clipboard.writeText(text), "Copy it by hand", `${what} copied`);
  return <Button label={`Copy ${what.toLowerCase()}`} onPress={copy} />;
}
