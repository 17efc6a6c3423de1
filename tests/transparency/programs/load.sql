PRAGMA journal_mode=WAL;
PRAGMA threads=2;
CREATE TABLE words(id INTEGER PRIMARY KEY, word TEXT, n INTEGER);
BEGIN;
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40000)
INSERT INTO words SELECT i, printf('word%d', (i * 7919) % 40009), i % 101 FROM c;
COMMIT;
CREATE INDEX by_word ON words(word);
SELECT n, count(*), min(word), max(word) FROM words GROUP BY n ORDER BY n LIMIT 5;
BEGIN; DELETE FROM words WHERE id % 3 = 0; ROLLBACK;
DELETE FROM words WHERE id % 5 = 0;
UPDATE words SET word = word || 'x' WHERE n < 10;
VACUUM;
SELECT count(*) FROM words a JOIN words b ON a.word = b.word;
SELECT word FROM words ORDER BY word DESC, id LIMIT 3;
