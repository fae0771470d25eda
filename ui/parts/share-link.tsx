import { useWords } from "#ui/state/context.ts";
import { CopyButton } from "./copy.tsx";
import { QrCode } from "./qr.tsx";

/** A link that clients take as it is: to copy, and as a code for their camera. */
export function ShareLink({ text }: { readonly text: string }) {
  const { t } = useWords();
  return (
    <>
      <p class="secret">
        {t("setup.shareLink")}: <code>{text}</code>
        <CopyButton text={text} label={t("user.copyLink")} done={t("user.linkCopied")} />
      </p>
      <QrCode text={text} label={t("setup.linkQr")} />
    </>
  );
}
