# A repository's life: commits, branches, a merge, garbage collection, a local clone.
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main repo
cp -r tree repo/
cd repo
git add -A
git commit -qm first
for i in 1 2 3 4 5; do
  echo "$i" >>tree/a
  git commit -qam "change $i"
done
git checkout -qb side HEAD~2
echo side >tree/side
git add -A
git commit -qm side
git checkout -q main
git merge -q -m merge side
git log --oneline --graph | cat
git gc -q
git fsck --strict
git count-objects -v | grep -E '^(count|in-pack|packs)'
git rev-parse 'HEAD^{tree}' HEAD
git diff --stat HEAD~3 | cat
git grep -c wizards | sha256sum
cd ..
git clone -q repo clone
git -C clone log -1 --format=%H
git -C clone status --short
git -C repo archive HEAD | sha256sum
echo clone ok
