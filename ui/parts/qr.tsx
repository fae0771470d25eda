import { useMemo } from "preact/hooks";
import encodeQr from "qr";

/** Light modules around the code, so that cameras find it (ISO/IEC 18004 §5.3.8). */
const QUIET = 4;

/** A text as a QR code, drawn as one path: nothing is loaded from anywhere. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const { path, size } = useMemo(() => drawingOf(text), [text]);
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path d={path} fill="#000" />
    </svg>
  );
}

function drawingOf(text: string): { readonly path: string; readonly size: number } {
  const modules = encodeQr(text, "raw", { border: QUIET });
  const path = modules
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
    .join("");
  return { path, size: modules.length };
}
