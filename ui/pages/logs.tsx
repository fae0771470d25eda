import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { LOG_LEVELS, type LogLevel, type LogRecord } from "#ui/api/types.ts";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { Button, Empty, Page } from "#ui/parts/small.tsx";
import { useStream, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";

/** Beyond this the oldest lines go. */
const MAX_LINES = 1_000;
/** Lines are drawn in lots, at most this often. */
const DRAW_MS = 200;
/** This near to the end counts as at the end, and new lines are followed. */
const END_PX = 40;

interface Line extends LogRecord {
  readonly id: number;
}

export function LogsPage() {
  const [level, setLevel] = useState<LogLevel>("info");
  return <Logs key={level} level={level} setLevel={setLevel} />;
}

/** One life a level: a stream at another level starts a list of its own. */
function Logs({
  level,
  setLevel,
}: {
  readonly level: LogLevel;
  readonly setLevel: (level: LogLevel) => void;
}) {
  const { t } = useWords();
  const [paused, setPaused] = useState(false);
  const { lines, clear } = useLines(level, paused);
  const [filter, setFilter] = useState("");
  const shown = matching(lines, filter, ({ message }) => message);
  return (
    <Page
      title={t("page.logs")}
      fill
      tools={
        <>
          <Input label={t("common.filter")} type="search" value={filter} onInput={setFilter} />
          <Select
            label={t("logs.level")}
            value={level}
            options={LOG_LEVELS.map((entry) => [entry, entry])}
            onChange={setLevel}
          />
          <Button label={paused ? t("logs.resume") : t("logs.pause")} onPress={() => setPaused(!paused)} />
          <Button label={t("logs.clear")} onPress={clear} disabled={lines.length === 0} />
        </>
      }
    >
      <p class="status" role="status">
        {paused && t("logs.paused")} {lines.length === MAX_LINES && t("logs.last", { count: MAX_LINES })}
      </p>
      {shown.length === 0 ? (
        <Empty title={lines.length === 0 ? t("logs.nothing") : t("common.noFilterMatch")}>
          {lines.length === 0 ? t("logs.nothingText", { level }) : undefined}
        </Empty>
      ) : (
        <LogLines lines={shown} />
      )}
    </Page>
  );
}

/** The last lines from a level on, drawn in lots. */
function useLines(level: LogLevel, paused: boolean) {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const state = useRef({ waiting: [] as Line[], last: 0, paused });
  state.current.paused = paused;
  const onRecord = (record: LogRecord): void => {
    const { current } = state;
    if (current.paused) return;
    current.waiting.push({ ...record, id: ++current.last });
    if (current.waiting.length > MAX_LINES) current.waiting.shift();
  };
  // Every stream begins with the past, so what an earlier one has brought would stand there twice.
  const onOpen = (): void => {
    if (state.current.paused) return;
    state.current.waiting = [];
    setLines([]);
  };
  useStream<LogRecord>(`logs?level=${level}&format=structured&history=${MAX_LINES}`, onRecord, onOpen);
  useEffect(() => {
    const timer = setInterval(() => {
      const { waiting } = state.current;
      if (waiting.length === 0) return;
      state.current.waiting = [];
      setLines((before) => [...before, ...waiting].slice(-MAX_LINES));
    }, DRAW_MS);
    return () => clearInterval(timer);
  }, []);
  return { lines, clear: () => setLines([]) };
}

function LogLines({ lines }: { readonly lines: readonly Line[] }) {
  const { t } = useWords();
  const box = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null && following.current) element.scrollTop = element.scrollHeight;
  }, [lines]);
  const onScroll = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = box.current as HTMLDivElement;
    following.current = scrollHeight - scrollTop - clientHeight < END_PX;
  };
  return (
    <div
      ref={box}
      class="log"
      role="log"
      aria-live="off"
      aria-label={t("logs.lines")}
      tabIndex={0}
      onScroll={onScroll}
    >
      {lines.map(({ id, time, level, message }) => (
        <p key={id} class={`log-line ${level}`}>
          <span class="log-time">{time}</span>
          <span class="log-level">{level}</span>
          <span class="log-text">{message}</span>
        </p>
      ))}
    </div>
  );
}
