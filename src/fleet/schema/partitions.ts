/**
 * The seventh version of the fleet's schema: partitions are made and dropped beside transactions that stay open. A backup is one,
 * and so is a login that reads totals and goes to sleep.
 */
export const PARTITIONS = `
-- What was folded, apart from what has come: an upload and a fold that stays open do not wait for each other.
CREATE TABLE weir.ledger_folded (
  node_id uuid NOT NULL,
  epoch bigint NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (node_id, epoch)
);
-- One row an upload, until it is folded: of marks, which stay for ever, only those are looked at that have something to fold.
CREATE TABLE weir.ledger_came (
  node_id uuid NOT NULL,
  epoch bigint NOT NULL
);
LOCK TABLE weir.ledger_mark IN ACCESS EXCLUSIVE MODE;
INSERT INTO weir.ledger_folded SELECT node_id, epoch, folded FROM weir.ledger_mark;
INSERT INTO weir.ledger_came SELECT node_id, epoch FROM weir.ledger_mark WHERE received > folded;
ALTER TABLE weir.ledger_mark DROP COLUMN folded;

CREATE FUNCTION weir.partition_of(hour timestamptz) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
  SELECT 'ledger_' || to_char(date_trunc('hour', hour), 'YYYYMMDDHH24')
$$;

-- As in version 5, and it waits for no reader: a table of its own is attached. A table that cannot be attached soon is not made.
CREATE OR REPLACE FUNCTION weir.make_partition(hour timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' SET lock_timeout = '100ms' AS $$
DECLARE part text := weir.partition_of(hour);
BEGIN
  IF to_regclass('weir.' || part) IS NOT NULL THEN RETURN; END IF;
  BEGIN
    LOCK TABLE weir.ledger IN SHARE UPDATE EXCLUSIVE MODE; -- it brings news of tables
    IF to_regclass('weir.' || part) IS NOT NULL THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE weir.%I (LIKE weir.ledger INCLUDING CONSTRAINTS INCLUDING INDEXES)', part);
    EXECUTE format('ALTER TABLE weir.ledger ATTACH PARTITION weir.%I FOR VALUES FROM (%L) TO (%L)',
      part, date_trunc('hour', hour), date_trunc('hour', hour) + interval '1 hour');
  EXCEPTION WHEN lock_not_available THEN NULL;
  END;
END $$;

-- When entries of this moment are to have come, by the partition that takes them: the newest one where theirs cannot be made now.
CREATE FUNCTION weir.ledger_place(moment timestamptz) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' AS $$
BEGIN
  PERFORM weir.make_partition(moment);
  IF to_regclass('weir.' || weir.partition_of(moment)) IS NOT NULL THEN RETURN moment; END IF;
  RETURN (SELECT to_timestamp(right(max(c.relname::text), 10), 'YYYYMMDDHH24')
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'weir.ledger'::regclass);
END $$;
SELECT weir.make_partition(clock_timestamp()), weir.make_partition(clock_timestamp() + interval '1 hour');

-- As in version 3. What is still read is dropped another time, and the newest partition stays for what comes.
CREATE OR REPLACE FUNCTION weir.tidy() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp SET timezone = 'UTC' SET lock_timeout = '300ms' AS $$
DECLARE
  part text;
  present text := weir.partition_of(weir.ledger_place(clock_timestamp()));
  is_needed boolean;
  dropped integer := 0;
BEGIN
  PERFORM FROM weir.fold_count FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  FOR part IN
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'weir.ledger'::regclass AND c.relname < weir.partition_of(clock_timestamp() - interval '2 hours')
    ORDER BY c.relname
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM weir.%I l JOIN weir.ledger_came c USING (node_id, epoch)
      LEFT JOIN weir.ledger_folded f USING (node_id, epoch) WHERE l.seq > coalesce(f.seq, 0))', part) INTO is_needed;
    CONTINUE WHEN is_needed OR part = present;
    BEGIN
      EXECUTE format('DROP TABLE weir.%I', part);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN EXIT;
    END;
  END LOOP;
  BEGIN
    DELETE FROM weir.usage_hour WHERE hour < clock_timestamp() - interval '400 days';
    DELETE FROM weir.change c WHERE c.at < clock_timestamp() - interval '7 days'
      AND c.revision < (SELECT l.revision FROM weir.listener l WHERE l.tag = c.listener); -- the present one is looked for
    DELETE FROM weir.audit WHERE at < clock_timestamp() - interval '400 days';
    DELETE FROM weir.lease l WHERE NOT EXISTS (SELECT FROM weir.app_user u WHERE u.id = l.user_id);
    DELETE FROM weir.turn t WHERE NOT EXISTS (SELECT FROM weir.app_user u WHERE u.id = t.user_id);
  EXCEPTION WHEN lock_not_available THEN NULL;
  END;
  RETURN dropped;
END $$;
`;
