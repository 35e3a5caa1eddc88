"""Small faults planted into C++ on purpose, and the tests that must notice them: see mutate.py."""
